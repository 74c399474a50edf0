#include "results/report/picture.h"

#include <cairo-pdf.h>
#include <librsvg/rsvg.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/embedded.h"
#include "core/file.h"
#include "results/report/figure_drawing.h"
#include "results/report/html.h"

EMBEDDED_FILES(report_files); /* style.css is the first */

#define MARGIN 12.0
#define GAP 18.0
#define TITLE 24.0
#define LINE 18.0
#define BOLD 7.0 /* the mean width of a letter of the title */
#define KEY 34.0 /* room for a key's mark */
#define PIXELS 2 /* of the bitmap, for one of the drawing */

enum { ROW_MOST = 4 /* panels that still stand in one row */, NAME_MOST = 60 };

/* --- The document --- */

/* The drawings' rules of style.css, each var(--name) as its first definition, the light theme's, has it. */
static void add_style(struct text *svg)
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
    text_add(svg, "\n</style>\n");
}

static void add_legend(struct text *svg, const struct figure *figure, double width, double *top)
{
    double x = MARGIN;
    for (size_t i = 0; figure->legend_count > 1 && i < figure->legend_count; i++) {
        if (!figure_uses(figure, i))
            continue;
        double size = KEY + draw_width(figure->legend[i], NAME_MOST);
        if (x > MARGIN && x + size > width - MARGIN) {
            x = MARGIN;
            *top += LINE;
        }
        text_add(svg, "<path class=\"line c%zu\" d=\"M%.5g %.5gh20\"/>\n", i, x, *top + 8);
        draw_mark(svg, i, x + 10, *top + 8, "", (double)NAN, 0);
        draw_short_text(svg, "tl", x + 25, *top + 12, figure->legend[i], NAME_MOST);
        x += size;
    }
    *top += x > MARGIN ? LINE : 0;
}

static void add_scale(struct text *svg, const struct figure *figure, double *top)
{
    if (figure->kind != FIGURE_HEAT)
        return;
    struct figure_range range = figure_range(figure, 0);
    char low[32], high[32];
    snprintf(low, sizeof low, "%.3g", range.low);
    snprintf(high, sizeof high, "%.3g", range.high);
    draw_text(svg, "ty", MARGIN + 35, *top + 12, low);
    for (int level = 0; level < HTML_LEVELS; level++)
        text_add(svg, "<path class=\"h%d\" d=\"M%g %gh12v10h-12z\"/>\n", level, MARGIN + 40 + 12 * level, *top + 3);
    draw_text(svg, "", MARGIN + 45 + 12 * HTML_LEVELS, *top + 12, high);
    *top += LINE;
}

static size_t count_across(const struct figure *figure)
{
    bool one_row = figure->panels <= ROW_MOST || figure->kind == FIGURE_INTERVALS;
    return one_row ? figure->panels : (size_t)ceil(sqrt((double)figure->panels));
}

static void add_panels(struct text *svg, const struct figure *figure, size_t across, double top)
{
    struct drawing_size size = {0};
    for (size_t i = 0; i < figure->panels; i++) {
        size_t column = i % across, row = i / across;
        text_add(svg, "<g transform=\"translate(%.6g %.6g)\">", MARGIN + (double)column * (size.width + GAP),
                 top + (double)row * (size.height + GAP));
        size = draw_panel(svg, figure, i);
        text_add(svg, "</g>\n");
    }
}

void picture_svg(struct text *svg, const struct figure *figure)
{
    struct text measured = {0}, body = {0};
    size_t across = count_across(figure), rows = across > 0 ? (figure->panels + across - 1) / across : 0;
    struct drawing_size size = across > 0 ? draw_panel(&measured, figure, 0) : (struct drawing_size){0};
    double width = fmax(2 * MARGIN + (double)across * (size.width + GAP) - GAP,
                        2 * MARGIN + draw_width(figure->title, NAME_MOST)),
           top = MARGIN + TITLE;
    text_free(&measured);
    draw_short_text(&body, "pt", MARGIN, MARGIN + 10, figure->title, (size_t)((width - 2 * MARGIN) / BOLD));
    add_legend(&body, figure, width, &top);
    add_scale(&body, figure, &top);
    top += LINE / 2;
    add_panels(&body, figure, across, top);
    double height = top + (double)rows * (size.height + GAP);
    text_add(svg,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"panels\" font-family=\"sans-serif\" viewBox=\"0 0 %.6g "
             "%.6g\" width=\"%.6g\" height=\"%.6g\">\n",
             width, height, width, height);
    add_style(svg);
    text_add(svg, "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n%s</svg>\n", body.failed ? "" : body.data);
    svg->failed |= body.failed;
    text_free(&body);
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

/* Draws the document onto the surface, which is freed, and its PNG into png where that is asked for. */
static status render(RsvgHandle *document, cairo_surface_t *surface, struct drawing_size size, double scale,
                     struct text *png, struct error *error)
{
    GError *problem = NULL;
    cairo_t *drawing = cairo_create(surface);
    cairo_scale(drawing, scale, scale);
    bool drawn = rsvg_handle_render_document(document, drawing,
                                             &(RsvgRectangle){.width = size.width, .height = size.height}, &problem);
    cairo_status_t state = cairo_status(drawing);
    if (drawn && png != NULL)
        state = cairo_surface_write_to_png_stream(surface, take, png);
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

static status write_drawn(const char *folder, const char *name, RsvgHandle *document, struct error *error)
{
    struct text png = {0}, pdf = {0};
    struct drawing_size size;
    rsvg_handle_get_intrinsic_size_in_pixels(document, &size.width, &size.height);
    status result =
        render(document,
               cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(PIXELS * size.width), (int)(PIXELS * size.height)),
               size, PIXELS, &png, error);
    if (result == OK)
        result = render(document, cairo_pdf_surface_create_for_stream(take, &pdf, size.width, size.height), size, 1,
                        NULL, error);
    if (result == OK)
        result = write_text(folder, name, "png", &png, error);
    if (result == OK)
        result = write_text(folder, name, "pdf", &pdf, error);
    text_free(&png);
    text_free(&pdf);
    return result;
}

status picture_write(const char *folder, const struct figure *figure, struct error *error)
{
    struct text svg = {0}, data = {0};
    GError *problem = NULL;
    picture_svg(&svg, figure);
    figure_data(&data, figure);
    status result = write_text(folder, figure->name, "svg", &svg, error);
    if (result == OK)
        result = write_text(folder, figure->name, "dat", &data, error);
    RsvgHandle *document =
        result == OK ? rsvg_handle_new_from_data((const guint8 *)svg.data, svg.size, &problem) : NULL;
    if (document != NULL)
        result = write_drawn(folder, figure->name, document, error);
    else if (result == OK)
        result = error_set(error, ERROR_MEMORY, "figure %s cannot be drawn: %s", figure->name, problem->message);
    g_clear_error(&problem);
    if (document != NULL)
        g_object_unref(document);
    text_free(&svg);
    text_free(&data);
    return result;
}
