#include <cairo-pdf.h>
#include <librsvg/rsvg.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/embedded.h"
#include "core/file.h"
#include "results/query/internal.h"
#include "results/report/figure.h"
#include "results/report/html.h"

EMBEDDED_FILES(report_files); /* style.css is the first */

/* Points of a column and of both, of a page with two (CVPR's; others differ by a few points). */
#define COLUMN 234.0
#define PAGE 495.0

#define MARGIN 6.0
#define GAP 14.0
#define TITLE 20.0
#define LINE 16.0
#define AXIS 14.0  /* room for the name of the vertical axis */
#define LETTER 7.5 /* the mean width of a letter of the title */
#define KEY 34.0   /* room for a key's mark */
#define POINT 0.75 /* points for one unit of the drawing: words of 10 have 7.5 points */
#define DPI 300.0

enum { NAME_MOST = 60 };

/* --- The document --- */

/* The drawings' rules of style.css, each var(--name) as the light theme has it: light-dark(here, not there). */
static void add_style(struct text *svg)
{
    const char *css = (const char *)report_files[0].data, *at = strstr(css, "/* Drawings"), *end = strstr(at, "\n\n");
    text_add(svg, "<style>\n");
    for (const char *next; (next = strstr(at, "var(")) != NULL && next < end; at = strchr(next, ')') + 1) {
        char name[32];
        snprintf(name, sizeof name, "%.*s: light-dark(", (int)strcspn(next + 4, ")"), next + 4);
        const char *value = strstr(css, name);
        text_add_bytes(svg, at, (size_t)(next - at));
        value += value != NULL ? strlen(name) : 0;
        text_add(svg, "%.*s", value != NULL ? (int)strcspn(value, ",") : 0, value);
    }
    text_add_bytes(svg, at, (size_t)(end - at));
    text_add(svg, "\n</style>\n");
}

static double add_legend(struct text *svg, const struct figure *figure, double width, double top)
{
    double x = MARGIN;
    for (size_t i = 0; i < REPORT_BEST; i++) {
        const char *name = figure_legend(figure, i);
        double size = name != NULL ? KEY + draw_width(name, NAME_MOST) : 0;
        if (name == NULL)
            continue;
        if (x > MARGIN && x + size > width - MARGIN) {
            x = MARGIN;
            top += LINE;
        }
        if (figure->kind->grid)
            text_add(svg, "<path class=\"m c%zu\" d=\"M%.5g %.5gh10v10h-10z\"/>\n", i, x + 10, top + 3);
        else
            text_add(svg, "<path class=\"line c%zu\" d=\"M%.5g %.5gh20\"/>\n", i, x, top + 8);
        if (text_has_word(figure->words, "points"))
            draw_mark(svg, i, x + 10, top + 8, "", (double)NAN, 0);
        draw_text(svg, "tl", x + 25, top + 12, name, NAME_MOST);
        x += size;
    }
    return x > MARGIN ? top + LINE : top;
}

/* Adds the panels and returns where they end: as many beside one another as have room, the rows of equal length if possible. */
static double add_panels(struct text *svg, const struct figure *figure, double width, double top)
{
    double left = MARGIN + (figure->y_title != NULL ? AXIS : 0), room = width - MARGIN - left;
    double most = figure->printed ? 1 : floor((room + GAP) / (figure->kind->least + GAP));
    size_t across = (size_t)ceil((double)figure->panels / ceil((double)figure->panels / fmax(most, 1)));
    double panel = (room + GAP) / (double)across - GAP;
    double height = 0;
    for (size_t i = 0; i < figure->panels; i++) {
        size_t column = i % across;
        top += column == 0 && i > 0 ? height + GAP / 2 : 0;
        text_add(svg, "<g transform=\"translate(%.6g %.6g)\">", left + (double)column * (panel + GAP), top);
        height = figure_panel(svg, figure, i, panel);
        text_add(svg, "</g>\n");
        if (column > 0 || figure->y_title == NULL)
            continue;
        text_add(svg, "<g transform=\"rotate(-90 %g %.5g)\">", MARGIN + 8, top + height / 2);
        draw_text(svg, "tx", MARGIN + 8, top + height / 2, figure->y_title, SIZE_MAX);
        text_add(svg, "</g>\n");
    }
    return top + height;
}

static void add_document(struct text *svg, const struct figure *figure, double points)
{
    struct text body = {0};
    double width = points / POINT, top = MARGIN;
    if (figure->kind->grid) { /* the others say it on their axes */
        draw_text(&body, "pt", MARGIN, MARGIN + 10, figure->title, (size_t)((width - 2 * MARGIN) / LETTER));
        top += TITLE;
    }
    if (figure->kind->shades) {
        figure_colour_bar(&body, figure, MARGIN, top);
        top += figure->printed ? 0 : LINE; /* the panel of a printed one has no title */
    }
    top = add_legend(&body, figure, width, top);
    double height = add_panels(&body, figure, width, top + MARGIN) + MARGIN;
    text_add(svg,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"panels\" font-family=\"sans-serif\" viewBox=\"0 0 %.6g "
             "%.6g\" width=\"%.6gpt\" height=\"%.6gpt\">\n",
             width, height, POINT * width, POINT * height);
    add_style(svg);
    text_add(svg, "%s</svg>\n", body.data);
    text_free(&body);
}

/* --- Files --- */

/* Draws the document onto the surface; scale: its pixels for a point. */
static void render(RsvgHandle *document, cairo_surface_t *surface, const RsvgRectangle *page, double scale,
                   GError **problem)
{
    cairo_t *drawing = cairo_create(surface);
    cairo_set_source_rgb(drawing, 1, 1, 1);
    cairo_paint(drawing); /* to the last pixel, which the document may cover in part */
    cairo_scale(drawing, scale, scale);
    rsvg_handle_render_document(document, drawing, page, problem);
    cairo_status_t state = cairo_status(drawing);
    if (*problem == NULL && state != CAIRO_STATUS_SUCCESS)
        g_set_error_literal(problem, RSVG_ERROR, RSVG_ERROR_FAILED, cairo_status_to_string(state));
    cairo_destroy(drawing);
    cairo_surface_flush(surface);
}

static cairo_status_t take(void *text, const unsigned char *bytes, unsigned size)
{
    text_add_bytes(text, (const char *)bytes, size);
    return CAIRO_STATUS_SUCCESS;
}

static void take_png(png_struct *png, png_byte *bytes, size_t size)
{
    text_add_bytes(png_get_io_ptr(png), (const char *)bytes, size);
}

/* With its resolution, which cairo does not write. Row filters would take half of the time and make flat colours no smaller. */
static void encode(cairo_surface_t *surface, struct text *file)
{
    enum { PER_METRE = (int)(DPI / 0.0254 + 0.5) };
    int width = cairo_image_surface_get_width(surface), height = cairo_image_surface_get_height(surface);
    png_struct *png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_info *info = png_create_info_struct(png);
    png_set_write_fn(png, file, take_png, NULL);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_pHYs(png, info, PER_METRE, PER_METRE, PNG_RESOLUTION_METER);
    png_set_filter(png, 0, PNG_FILTER_NONE);
    png_write_info(png, info);
    png_set_bgr(png); /* cairo's 32 bits of a pixel, the lowest byte first */
    png_set_filler(png, 0, PNG_FILLER_AFTER);
    for (int y = 0; y < height; y++)
        png_write_row(png, cairo_image_surface_get_data(surface) + y * cairo_image_surface_get_stride(surface));
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

/* The PDF has no date: the same figure, the same bytes. */
static status draw_files(const struct figure *figure, const struct text *svg, struct text *png, struct text *pdf,
                         struct error *error)
{
    GError *problem = NULL;
    RsvgRectangle page = {0};
    RsvgHandle *document = rsvg_handle_new_from_data((const guint8 *)svg->data, svg->size, &problem);
    if (document != NULL) {
        rsvg_handle_set_dpi(document, 72); /* its pixels are points */
        rsvg_handle_get_intrinsic_size_in_pixels(document, &page.width, &page.height);
        int width = (int)round(DPI / 72 * page.width), height = (int)round(DPI / 72 * page.height);
        cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height),
                        *paper = cairo_pdf_surface_create_for_stream(take, pdf, page.width, page.height);
        cairo_pdf_surface_set_metadata(paper, CAIRO_PDF_METADATA_CREATE_DATE, NULL);
        render(document, image, &page, DPI / 72, &problem);
        if (problem == NULL)
            render(document, paper, &page, 1, &problem);
        cairo_surface_finish(paper);
        if (problem == NULL)
            encode(image, png);
        cairo_surface_destroy(paper);
        cairo_surface_destroy(image);
        g_object_unref(document);
    }
    if (problem == NULL)
        return OK;
    error_set(error, ERROR_MEMORY, "figure %s cannot be drawn: %s", figure->name, problem->message);
    g_clear_error(&problem);
    return ERROR_MEMORY;
}

static status write_text(const char *folder, const char *stem, const char *end, const struct text *text,
                         struct error *error)
{
    char *path = path_format("%s/%s%s", folder, stem, end);
    struct file_writer writer;
    status result = file_writer_open_one_of_many(&writer, path, error);
    NEXT(result, file_writer_write(&writer, text->data, text->size, error));
    NEXT(result, file_writer_close(&writer, error));
    free(path);
    return result;
}

static status write_width(const char *folder, const struct figure *figure, const char *suffix, double points,
                          struct error *error)
{
    static const char *const ends[] = {".svg", ".png", ".pdf"};
    struct text file[3] = {0};
    char *stem = path_format("%s%s", figure->name, suffix);
    add_document(&file[0], figure, points);
    status result = draw_files(figure, &file[0], &file[1], &file[2], error);
    for (size_t i = 0; i < 3; i++) {
        NEXT(result, write_text(folder, stem, ends[i], &file[i], error));
        text_free(&file[i]);
    }
    free(stem);
    return result;
}

/* The rows that are drawn, for whoever draws them in another way. */
static status write_data(const char *folder, const struct figure *figure, struct error *error)
{
    struct text csv = {0};
    struct table rows = {0};
    for (size_t i = 0; i < figure->table->columns; i++)
        table_add_column(&rows, &figure->table->column[i]);
    for (size_t i = figure->first * rows.columns; i < figure->end * rows.columns; i++)
        query_copy_cell(&rows, &figure->table->cell[i]);
    status result = table_render(&rows, TABLE_CSV, false, &csv, error);
    NEXT(result, write_text(folder, figure->name, ".csv", &csv, error));
    table_free(&rows);
    text_free(&csv);
    return result;
}

status picture_write(const char *folder, const struct figure *figure, struct error *error)
{
    struct text caption = {0};
    text_add(&caption, "%s. %s%s\n%s\n", figure->title, figure->caption, figure->caption[0] != 0 ? "\n" : "",
             figure->kind->shades ? "Shades: Blues (ColorBrewer), light to dark, also for colour-blind readers."
                                  : "Colours: Okabe and Ito (2008), also for colour-blind readers.");
    status result = write_text(folder, figure->name, ".txt", &caption, error);
    text_free(&caption);
    NEXT(result, write_data(folder, figure, error));
    NEXT(result, write_width(folder, figure, "-column", COLUMN, error));
    NEXT(result, write_width(folder, figure, "", PAGE, error));
    return result;
}
