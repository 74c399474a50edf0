#include "results/report/picture.h"

#include <cairo-pdf.h>
#include <librsvg/rsvg.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/embedded.h"
#include "core/file.h"
#include "results/report/figure_drawing.h"
#include "results/report/fonts.h"
#include "results/report/html.h"

EMBEDDED_FILES(report_files); /* style.css is the first */

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

/* The width of a column and of both, of a page with two (CVPR's; others differ by a few points). */
static const struct width {
    double points;
    const char *suffix;
} widths[PICTURE_WIDTHS] = {[PICTURE_COLUMN] = {234, "-column"}, [PICTURE_PAGE] = {495, ""}};

/* Panels are not narrower than that. */
static const double least[] = {
    [FIGURE_LINES] = 130, [FIGURE_HEAT] = 130, [FIGURE_INTERVALS] = 200, [FIGURE_CELLS] = 130};

/* --- The document --- */

/* The drawings' rules of style.css, each var(--name) as its first definition, the light theme's, has it. */
static status add_style(struct text *svg, const struct text *body, struct error *error)
{
    const char *css = (const char *)report_files[0].data, *at = strstr(css, "/* Drawings"), *end = strstr(at, "\n\n");
    text_add(svg, "<style>\n");
    for (const char *next; (next = strstr(at, "var(")) != NULL && next < end; at = strchr(next, ')') + 1) {
        char name[32];
        snprintf(name, sizeof name, "%.*s: ", (int)strcspn(next + 4, ")"), next + 4);
        const char *value = strstr(css, name);
        text_add_bytes(svg, at, (size_t)(next - at));
        value += value != NULL ? strlen(name) : 0;
        text_add(svg, "%.*s", value != NULL ? (int)strcspn(value, ";") : 0, value);
    }
    text_add_bytes(svg, at, (size_t)(end - at));
    text_add(svg, "\n");
    TRY(fonts_embed(svg, body->failed ? "" : body->data, error));
    text_add(svg, "</style>\n");
    return OK;
}

static void add_legend(struct text *svg, const struct figure *figure, double width, double *top)
{
    double x = MARGIN;
    for (size_t i = 0; figure_names(figure) && i < figure->legend_count; i++) {
        if (!figure_uses(figure, i))
            continue;
        double size = KEY + draw_width(figure->legend[i], NAME_MOST);
        if (x > MARGIN && x + size > width - MARGIN) {
            x = MARGIN;
            *top += LINE;
        }
        if (figure->kind == FIGURE_CELLS)
            text_add(svg, "<path class=\"m c%zu\" d=\"M%.5g %.5gh10v10h-10z\"/>\n", i, x + 10, *top + 3);
        else
            text_add(svg, "<path class=\"line c%zu\" d=\"M%.5g %.5gh20\"/>\n", i, x, *top + 8);
        if (figure->points)
            draw_mark(svg, i, x + 10, *top + 8, "", (double)NAN, 0);
        draw_short_text(svg, "tl", x + 25, *top + 12, figure->legend[i], NAME_MOST);
        x += size;
    }
    *top += x > MARGIN ? LINE : 0;
}

struct layout {
    double width, left, panel; /* left: where panels begin; panel: how wide one is */
    size_t across, rows;
};

/* As many panels beside one another as have room, the rows of equal length if possible. */
static struct layout lay_out(const struct figure *figure, enum picture_width width)
{
    struct layout layout = {.width = widths[width].points / POINT};
    layout.left = MARGIN + (figure->y_title != NULL ? AXIS : 0);
    double room = layout.width - MARGIN - layout.left;
    size_t most = (size_t)((room + GAP) / (least[figure->kind] + GAP));
    most = figure->printed || most == 0 ? 1 : most;
    layout.rows = (figure->panels + most - 1) / most;
    layout.across = layout.rows > 0 ? (figure->panels + layout.rows - 1) / layout.rows : 1;
    layout.panel = (room + GAP) / (double)layout.across - GAP;
    return layout;
}

static void add_axis_name(struct text *svg, const struct figure *figure, double y)
{
    if (figure->y_title == NULL)
        return;
    text_add(svg, "<g transform=\"rotate(-90 %g %.5g)\">", MARGIN + 8, y);
    draw_text(svg, "tx", MARGIN + 8, y, figure->y_title);
    text_add(svg, "</g>\n");
}

/* Adds the panels and returns where they end. */
static double add_panels(struct text *svg, const struct figure *figure, const struct layout *layout, double top)
{
    struct drawing_size size = {0};
    for (size_t i = 0; i < figure->panels; i++) {
        size_t column = i % layout->across;
        top += column == 0 && i > 0 ? size.height + GAP / 2 : 0;
        text_add(svg, "<g transform=\"translate(%.6g %.6g)\">", layout->left + (double)column * (layout->panel + GAP),
                 top);
        size = draw_panel(svg, figure, i, layout->panel);
        text_add(svg, "</g>\n");
        if (column == 0)
            add_axis_name(svg, figure, top + size.height / 2);
    }
    return top + size.height;
}

status picture_svg(struct text *svg, const struct figure *figure, enum picture_width width, struct error *error)
{
    struct text body = {0};
    struct layout layout = lay_out(figure, width);
    double top = MARGIN;
    if (figure->kind == FIGURE_HEAT || figure->kind == FIGURE_CELLS) { /* the others say it on their axes */
        draw_short_text(&body, "pt", MARGIN, MARGIN + 10, figure->title,
                        (size_t)((layout.width - 2 * MARGIN) / LETTER));
        top += TITLE;
    }
    if (figure->kind == FIGURE_HEAT) {
        draw_colour_bar(&body, figure, MARGIN, top);
        top += figure->printed ? 0 : LINE; /* the panel of a printed one has no title */
    }
    add_legend(&body, figure, layout.width, &top);
    double height = add_panels(&body, figure, &layout, top + MARGIN) + MARGIN;
    text_add(svg,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"panels\" font-family=\"sans-serif\" viewBox=\"0 0 %.6g "
             "%.6g\" width=\"%.6gpt\" height=\"%.6gpt\">\n",
             layout.width, height, POINT * layout.width, POINT * height);
    status result = add_style(svg, &body, error);
    text_add(svg, "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n%s</svg>\n", body.failed ? "" : body.data);
    svg->failed |= body.failed;
    text_free(&body);
    return result;
}

/* --- Files --- */

static status write_text(const char *folder, const char *stem, const char *end, struct text *text, struct error *error)
{
    char *path = path_format("%s/%s.%s", folder, stem, end);
    struct file_writer writer;
    status result = path == NULL || text->failed
                        ? error_set(error, ERROR_MEMORY, "%s: no memory for figure %s", folder, stem)
                        : file_writer_open_one_of_many(&writer, path, error);
    if (result == OK)
        result = file_writer_write(&writer, text->data, text->size, error);
    if (result == OK)
        result = file_writer_close(&writer, error);
    free(path);
    return result;
}

static cairo_status_t take(void *closure, const unsigned char *bytes, unsigned size)
{
    struct text *text = closure;
    text_add_bytes(text, (const char *)bytes, size);
    return text->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

/* Without libpng's row filters, which take half of the time and make flat colours no smaller. */
static cairo_status_t encode(cairo_surface_t *surface, struct text *png)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)cairo_image_surface_get_width(surface),
                       .height = (png_uint_32)cairo_image_surface_get_height(surface),
                       .format = PNG_FORMAT_RGB,
                       .flags = PNG_IMAGE_FLAG_FAST};
    size_t pixels = (size_t)image.width * image.height;
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    cairo_surface_flush(surface);
    unsigned char *data = cairo_image_surface_get_data(surface), *rgb = malloc(3 * pixels), *file = malloc(size);
    for (size_t i = 0; rgb != NULL && data != NULL && i < pixels; i++) /* rows of whole pixels have no padding */
        for (size_t c = 0; c < 3; c++)
            rgb[3 * i + c] = (unsigned char)(((const uint32_t *)(void *)data)[i] >> (16 - 8 * c));
    bool written = rgb != NULL && data != NULL && file != NULL &&
                   png_image_write_to_memory(&image, file, &size, 0, rgb, 0, NULL) != 0;
    if (written)
        text_add_bytes(png, (const char *)file, size);
    free(file);
    free(rgb);
    return written && !png->failed ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_NO_MEMORY;
}

/* Draws the document onto the surface, which is freed, and its PNG into png where that is asked for. scale: of the
 * surface, for a point. */
static status render(RsvgHandle *document, cairo_surface_t *surface, struct drawing_size points, double scale,
                     struct text *png, struct error *error)
{
    GError *problem = NULL;
    cairo_t *drawing = cairo_create(surface);
    cairo_set_source_rgb(drawing, 1, 1, 1);
    cairo_paint(drawing); /* to the last pixel, which the document may cover in part */
    cairo_scale(drawing, scale, scale);
    bool drawn = rsvg_handle_render_document(
        document, drawing, &(RsvgRectangle){.width = points.width, .height = points.height}, &problem);
    cairo_status_t state = cairo_status(drawing);
    if (drawn && png != NULL)
        state = encode(surface, png);
    cairo_surface_finish(surface);
    state = state != CAIRO_STATUS_SUCCESS ? state : cairo_surface_status(surface);
    cairo_destroy(drawing);
    cairo_surface_destroy(surface);
    if (drawn && state == CAIRO_STATUS_SUCCESS)
        return OK;
    error_set(error, ERROR_MEMORY, "a figure cannot be drawn: %s",
              problem != NULL ? problem->message : cairo_status_to_string(state));
    g_clear_error(&problem);
    return ERROR_MEMORY;
}

static void add_big_endian(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* The bitmap with its resolution, a chunk behind the header (PNG, 11.3.4.3), which cairo does not write. */
static void add_resolution(struct text *png, const struct text *drawn)
{
    enum { HEADER = 8 + 25, PER_METRE = (int)(DPI / 0.0254 + 0.5) };
    unsigned char chunk[21] = {0, 0, 0, 9, 'p', 'H', 'Y', 's', [16] = 1 /* metres */};
    add_big_endian(chunk + 8, PER_METRE);
    add_big_endian(chunk + 12, PER_METRE);
    add_big_endian(chunk + 17, (uint32_t)crc32(0, chunk + 4, 13));
    text_add_bytes(png, drawn->data, HEADER);
    text_add_bytes(png, (const char *)chunk, sizeof chunk);
    text_add_bytes(png, drawn->data + HEADER, drawn->size - HEADER);
}

static status write_bitmap(const char *folder, const char *stem, RsvgHandle *document, struct drawing_size size,
                           struct error *error)
{
    struct text drawn = {0}, png = {0};
    double scale = DPI / 72;
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)round(scale * size.width), (int)round(scale * size.height));
    status result = render(document, surface, size, scale, &drawn, error);
    if (result == OK)
        add_resolution(&png, &drawn);
    if (result == OK)
        result = write_text(folder, stem, "png", &png, error);
    text_free(&drawn);
    text_free(&png);
    return result;
}

static status write_pdf(const char *folder, const char *stem, RsvgHandle *document, struct drawing_size size,
                        struct error *error)
{
    struct text file = {0};
    cairo_surface_t *surface = cairo_pdf_surface_create_for_stream(take, &file, size.width, size.height);
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, NULL); /* the same figure, the same bytes */
    status result = render(document, surface, size, 1, NULL, error);
    if (result == OK)
        result = write_text(folder, stem, "pdf", &file, error);
    text_free(&file);
    return result;
}

static status write_drawn(const char *folder, const char *stem, struct text *svg, RsvgHandle *document,
                          struct error *error)
{
    struct drawing_size size;
    rsvg_handle_set_dpi(document, 72); /* its pixels are points */
    rsvg_handle_get_intrinsic_size_in_pixels(document, &size.width, &size.height);
    TRY(write_bitmap(folder, stem, document, size, error));
    TRY(write_pdf(folder, stem, document, size, error));
    return write_text(folder, stem, "svg", svg, error);
}

static status write_stem(const char *folder, const char *stem, struct text *svg, struct error *error)
{
    GError *problem = NULL;
    RsvgHandle *document =
        svg->failed ? NULL : rsvg_handle_new_from_data((const guint8 *)svg->data, svg->size, &problem);
    if (document == NULL) {
        error_set(error, ERROR_MEMORY, "figure %s cannot be drawn: %s", stem,
                  problem != NULL ? problem->message : "no memory");
        g_clear_error(&problem);
        return ERROR_MEMORY;
    }
    status result = write_drawn(folder, stem, svg, document, error);
    g_object_unref(document);
    return result;
}

static status write_width(const char *folder, const struct figure *figure, enum picture_width width,
                          struct error *error)
{
    struct text svg = {0};
    char *stem = path_format("%s%s", figure->name, widths[width].suffix);
    status result = stem != NULL ? picture_svg(&svg, figure, width, error)
                                 : error_set(error, ERROR_MEMORY, "no memory for figure %s", figure->name);
    if (result == OK)
        result = write_stem(folder, stem, &svg, error);
    free(stem);
    text_free(&svg);
    return result;
}

static void add_caption(struct text *caption, const struct figure *figure)
{
    text_add(caption, "%s. %s%s\n%s\n", figure->title, figure->caption, figure->caption[0] != 0 ? "\n" : "",
             figure->kind == FIGURE_HEAT ? "Shades: Blues (ColorBrewer), light to dark, also for colour-blind readers."
                                         : "Colours: Okabe and Ito (2008), also for colour-blind readers.");
}

status picture_write(const char *folder, const struct figure *figure, struct error *error)
{
    struct text data = {0}, caption = {0};
    figure_data(&data, figure);
    add_caption(&caption, figure);
    status result = write_text(folder, figure->name, "dat", &data, error);
    if (result == OK)
        result = write_text(folder, figure->name, "txt", &caption, error);
    for (enum picture_width width = 0; width < PICTURE_WIDTHS && result == OK; width++)
        result = write_width(folder, figure, width, error);
    text_free(&data);
    text_free(&caption);
    return result;
}
