/* Axes of figures, and what is drawn of them. */
#include "tests/results/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "results/report/figure_drawing.h"
#include "results/report/picture.h"
#include "tests/results/report/sample_report.h"
#include "tests/results/sample.h"

static void expect_ticks(double low, double high, const char *expected)
{
    double ticks[FIGURE_TICKS];
    struct text text = {0};
    size_t count = figure_ticks(low, high, ticks);
    for (size_t i = 0; i < count; i++)
        text_add(&text, "%s%g", i ? " " : "", ticks[i]);
    assert_string_equal(text.data, expected);
    text_free(&text);
}

static void ticks_are_round(void **state)
{
    (void)state;
    double ticks[FIGURE_TICKS];
    expect_ticks(0, 100, "0 20 40 60 80 100");
    expect_ticks(17.3, 29.1, "18 20 22 24 26 28");
    expect_ticks(-1.2, 1.3, "-1 -0.5 0 0.5 1");
    expect_ticks(1e6, 3e6, "1e+06 1.5e+06 2e+06 2.5e+06 3e+06");
    expect_ticks(0.001, 0.0011, "0.001 0.00102 0.00104 0.00106 0.00108 0.0011");
    assert_int_equal(figure_whole_ticks(0, 3, ticks), 4); /* 0, 1, 2, 3 */
}

/* --- What is drawn --- */

/* The document, its style left out. The caller frees. */
static char *picture_of(const struct figure *figure, enum picture_width width)
{
    struct text svg = {0};
    picture_svg(&svg, figure, width);
    const char *body = strstr(svg.data, "</style>");
    assert_non_null(body);
    char *copy = strdup(body);
    text_free(&svg);
    return copy;
}

static char *panel_of(const struct figure *figure, double width, struct drawing_size *size)
{
    struct text svg = {0};
    *size = draw_panel(&svg, figure, 0, width);
    return svg.data;
}

static void expect_data(const struct figure *figure, const char *expected)
{
    struct text data = {0};
    figure_data(&data, figure);
    assert_string_equal(data.data, expected);
    text_free(&data);
}

static void expect_part(const char *text, const char *part, bool there)
{
    if ((strstr(text, part) != NULL) != there)
        fail_msg("%s %s in %s", part, there ? "is not" : "is", text);
}

/* The number of an attribute behind a class. */
static double number_of(const char *svg, const char *class, const char *attribute)
{
    const char *at = strstr(strstr(svg, class), attribute);
    assert_non_null(at);
    return strtod(at + strlen(attribute), NULL);
}

/* --- Intervals --- */

/* Where one seed has no interval, none is drawn. */
static void an_unknown_interval_is_not_drawn(void **state)
{
    (void)state;
    const struct figure_interval rows[] = {{"a", 0, 50, 45, 55}, {"b", 1, 52, (double)NAN, (double)NAN}};
    const struct figure_panel panel = {.title = "Last", .interval = rows, .intervals = 2};
    const struct figure figure = {
        .kind = FIGURE_INTERVALS, .panel = &panel, .panels = 1, .low = (double)NAN, .high = (double)NAN};
    char *svg = picture_of(&figure, PICTURE_PAGE);
    expect_part(svg, "<path class=\"line c0\"", true);
    expect_part(svg, "<path class=\"line c1\"", false);
    expect_part(svg, "<path class=\"m c1\"", true);
    expect_data(&figure, "# row mean low high; a block per panel\n0 50 45 55\n1 52 NaN NaN\n\n\n");
    free(svg);
}

/* The name's last letters must not cover the sign of the number beside it: letters of 11 and digits of 10 units are up to 7 and
 * 6.4 wide in DejaVu Sans. */
static void names_leave_room_for_signs(void **state)
{
    (void)state;
    static const char letters[] = "policy none compared with policy most_used and more";
    size_t beside = 0;
    for (size_t length = 1; length < sizeof letters; length++) {
        char label[sizeof letters];
        snprintf(label, sizeof label, "%.*s", (int)length, letters);
        const struct figure_interval row = {label, 0, -0.23, -11.52, 1.06};
        const struct figure_panel panel = {.title = "Last", .interval = &row, .intervals = 1};
        const struct figure figure = {.kind = FIGURE_INTERVALS,
                                      .panel = &panel,
                                      .panels = 1,
                                      .low = (double)NAN,
                                      .high = (double)NAN,
                                      .decimals = 2,
                                      .zero = true};
        char *svg = picture_of(&figure, PICTURE_COLUMN);
        expect_part(svg, "−0.23 [−11.52, 1.06]", true);
        double name_end = number_of(svg, "class=\"tl\"", " x=\"") + 7 * (double)length,
               value_begin = number_of(svg, "class=\"ty\"", " x=\"") - 6.4 * 20,
               apart = number_of(svg, "class=\"ty\"", " y=\"") - number_of(svg, "class=\"tl\"", " y=\"");
        beside += apart < 11;
        assert_true(apart >= 11 || name_end < value_begin);
        free(svg);
    }
    assert_true(beside > 0);
}

/* --- Lines --- */

static const double x[] = {0, 1, 2}, a[] = {10, (double)NAN, 30}, low[] = {5, 15, 25}, high[] = {15, 25, 40};
static const char *legend[] = {"one", SAMPLE_REPORT_HARM};

static const struct figure_series series[] = {
    {.colour = 0, .points = 3, .x = x, .y = a, .low = low, .high = high},
    {.colour = 1, .points = 2, .x = x, .y = low},
};

static const struct figure_panel line_panels[] = {
    {.title = "first", .series = series, .series_count = 2, .mark = 1},
    {.title = SAMPLE_REPORT_HARM, .series = series, .series_count = 1, .mark = (double)NAN},
};

static const struct figure lines = {.name = "lines",
                                    .title = SAMPLE_REPORT_HARM,
                                    .caption = "",
                                    .kind = FIGURE_LINES,
                                    .x_title = "tasks",
                                    .panel = line_panels,
                                    .panels = 2,
                                    .legend = legend,
                                    .legend_count = 2,
                                    .low = (double)NAN,
                                    .high = (double)NAN,
                                    .decimals = 1,
                                    .points = true};

static void ranges_hold_every_value(void **state)
{
    (void)state;
    struct figure_range range = figure_range(&lines, 0);
    assert_true(range.low < 5 && range.low > 0 && range.high > 40 && range.high < 45);
    struct figure fixed = lines;
    fixed.low = 0;
    fixed.high = 100;
    range = figure_range(&fixed, 1);
    assert_true(range.low == 0 && range.high == 100);
    range = figure_range(&(struct figure){.low = (double)NAN, .high = (double)NAN}, 0);
    assert_true(range.high > range.low);
    range = figure_range_x(&lines);
    assert_true(range.low == 0 && range.high == 2);
}

/* A document of its own: escaped names, colours instead of the page's variables, a legend of what is drawn, with its marks. */
static void a_picture_is_a_whole_document(void **state)
{
    (void)state;
    struct text svg = {0};
    picture_svg(&svg, &lines, PICTURE_PAGE);
    expect_part(svg.data, "<svg xmlns=\"http://www.w3.org/2000/svg\"", true);
    expect_part(svg.data, ".c0 { stroke: #0072b2; }", true);
    expect_part(svg.data, ">one</text>", true);
    expect_part(svg.data, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;", true);
    expect_part(svg.data, "<script", false);
    expect_part(svg.data, "var(", false);
    expect_part(svg.data, "light-dark", false);
    expect_part(svg.data, "\x01", false);
    text_free(&svg);
    char *marked = picture_of(&lines, PICTURE_COLUMN);
    expect_part(marked, "class=\"m c0\"", true);
    free(marked);
    struct figure plain = lines;
    plain.points = false;
    char *unmarked = picture_of(&plain, PICTURE_COLUMN);
    expect_part(unmarked, "class=\"m c0\"", false);
    free(unmarked);
}

static void the_same_figure_has_the_same_bytes(void **state)
{
    (void)state;
    static const char *const ends[] = {"-column.svg", ".svg", ".pdf", ".png"};
    char *folder = sample_path("figures");
    struct bytes first[4], second;
    assert_ok(directory_create(folder, &error));
    for (int again = 0; again < 2; again++) {
        assert_ok(picture_write(folder, &lines, &error));
        for (size_t i = 0; i < 4; i++) {
            char *path = path_format("%s/lines%s", folder, ends[i]);
            assert_ok(file_read(path, FILE_LIMIT, again ? &second : &first[i], &error));
            free(path);
            if (!again)
                continue;
            assert_int_equal(first[i].size, second.size);
            assert_memory_equal(first[i].data, second.data, second.size);
            bytes_free(&first[i]);
            bytes_free(&second);
        }
    }
    sample_remove(folder);
}

static void a_gap_interrupts_a_line(void **state)
{
    (void)state;
    struct drawing_size size;
    char *svg = panel_of(&lines, 0, &size);
    const char *line = strstr(svg, "<path class=\"line c0\" d=\"M");
    assert_non_null(line);
    size_t length = strcspn(line + 26, "\"");
    assert_null(memchr(line + 26, 'L', length)); /* two points with a gap between them: no stroke */
    assert_non_null(memchr(line + 26, 'M', length));
    expect_part(svg, "class=\"mark\"", true);
    expect_part(svg, "class=\"band c0\"", true);
    expect_part(svg, "class=\"band c1\"", false);
    free(svg);
    expect_data(&lines, "# x y low high; a block per panel and series\n"
                        "0 10 5 15\n1 NaN 15 25\n2 30 25 40\n\n\n"
                        "0 5 NaN NaN\n1 15 NaN NaN\n\n\n"
                        "0 10 5 15\n1 NaN 15 25\n2 30 25 40\n\n\n");
}

/* Where 5, 10, 15 and 20 have no room side by side, it is 10 and 20 that are named. */
static void few_labels_are_round(void **state)
{
    (void)state;
    const double iterations[] = {1, 10, 20};
    const struct figure_series loss = {.points = 3, .x = iterations, .y = low};
    const struct figure_panel panel = {.title = "loss", .series = &loss, .series_count = 1, .mark = (double)NAN};
    const struct figure figure = {.kind = FIGURE_LINES, .panel = &panel, .panels = 1, .low = 0, .high = 0.5};
    struct drawing_size size;
    char *svg = panel_of(&figure, 140, &size);
    expect_part(svg, ">10</text>", true);
    expect_part(svg, ">20</text>", true);
    expect_part(svg, ">5</text>", false);
    expect_part(svg, ">15</text>", false);
    free(svg);
}

/* --- Cells --- */

static const char *numbers[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"};

static struct figure heat_of(const struct figure_panel *panel, size_t columns, size_t rows)
{
    return (struct figure){.name = "heat",
                           .title = "heat",
                           .caption = "",
                           .kind = FIGURE_HEAT,
                           .panel = panel,
                           .panels = 1,
                           .x_label = numbers,
                           .columns = columns,
                           .y_label = numbers,
                           .rows = rows,
                           .low = 0,
                           .high = 9,
                           .decimals = 1};
}

/* The words fit on the shades, and frames are around the cells. */
static void values_stand_in_printed_cells(void **state)
{
    (void)state;
    const double value[] = {1, 9, (double)NAN, 4};
    const bool framed[] = {true, false, false, false};
    const char *names[] = {"first", SAMPLE_REPORT_HARM};
    const struct figure_panel panel = {.title = "heat", .value = value, .framed = framed};
    struct figure heat = heat_of(&panel, 2, 2);
    heat.x_label = heat.y_label = names;
    heat.printed = true;
    struct drawing_size size;
    char *svg = panel_of(&heat, 0, &size);
    expect_part(svg, "class=\"tx low\"", true);
    expect_part(svg, ">1.0</text>", true);
    expect_part(svg, "class=\"tx high\"", true);
    expect_part(svg, "<path class=\"box\"", true);
    assert_true(size.width > 300 && size.height > 150); /* long names have room, at most so much */
    assert_true(size.width < 600 && size.height < 400);
    free(svg);
}

/* In the width of a column "100.0" has no room, and "100" has. */
static void a_narrow_matrix_is_rounded(void **state)
{
    (void)state;
    double value[11 * 11];
    for (size_t i = 0; i < 11 * 11; i++)
        value[i] = 4.6;
    const struct figure_panel panel = {.title = "", .value = value};
    struct figure heat = heat_of(&panel, 11, 11);
    heat.printed = true;
    heat.x_title = "test on task";
    heat.y_title = "after training on";
    heat.value_title = "accuracy, %";
    char *wide = picture_of(&heat, PICTURE_PAGE), *narrow = picture_of(&heat, PICTURE_COLUMN);
    expect_part(wide, ">4.6</text>", true);
    expect_part(narrow, ">4.6</text>", false);
    expect_part(narrow, ">5</text>", true);
    expect_part(narrow, ">test on task</text>", true);
    expect_part(narrow, ">after training on</text>", true);
    expect_part(narrow, ">accuracy, %</text>", true);
    free(wide);
    free(narrow);
}

/* A file cuts off what leaves its panel. */
static void the_last_column_has_room_for_its_label(void **state)
{
    (void)state;
    double value[16] = {0}, at = 0;
    const struct figure_panel panel = {.title = "heat", .value = value};
    const struct figure heat = heat_of(&panel, 16, 1);
    struct drawing_size size;
    char *svg = panel_of(&heat, 140, &size);
    for (const char *text = svg; (text = strstr(text, "<text class=\"tx\"")) != NULL; text++)
        if (sscanf(text, "<text class=\"tx\" x=\"%lf\"", &at) == 1)
            assert_true(at + draw_width("15", 2) / 2 <= size.width);
    assert_true(at > 100);
    free(svg);
}

static void cells_share_a_path_per_shade(void **state)
{
    (void)state;
    const double value[] = {0, 0, 9, (double)NAN, 9, 4.5};
    const bool framed[] = {false, false, true, false, false, false};
    const struct figure_panel panel = {.title = "heat", .value = value, .framed = framed};
    const struct figure heat = heat_of(&panel, 3, 2);
    struct drawing_size size;
    char *svg = panel_of(&heat, 0, &size);
    size_t paths = 0;
    for (const char *at = svg; (at = strstr(at, "<path class=\"h")) != NULL; at++)
        paths++;
    assert_int_equal(paths, 3);
    expect_data(&heat, "# column row value framed; a block per panel\n"
                       "0 0 0 0\n1 0 0 0\n2 0 9 1\n0 1 NaN 0\n1 1 9 0\n2 1 4.5 0\n\n\n");
    free(svg);
}

/* Neighbours in a row are one rectangle; numbers, not colours, are in the data; cells name their colours even if there is one. */
static void cells_have_the_colours_of_their_numbers(void **state)
{
    (void)state;
    const double value[] = {7, 7, 3, (double)NAN, 3, 7};
    const uint8_t colour[] = {0, 0, 1, 1, 1, 0}, one[] = {0, 0, 0, 0, 0, 0};
    const char *experts[] = {"expert 7", SAMPLE_REPORT_HARM, "unused"};
    struct figure_panel panel = {.title = "cells", .value = value, .colour = colour};
    struct figure cells = heat_of(&panel, 3, 2);
    cells.kind = FIGURE_CELLS;
    cells.legend = experts;
    cells.legend_count = 3;
    struct drawing_size size;
    char *svg = panel_of(&cells, 30, &size), *picture = picture_of(&cells, PICTURE_COLUMN);
    assert_true(size.width == 30 && size.height == 40);
    expect_part(svg, "<path class=\"m c0\" shape-rendering=\"crispEdges\" d=\"M0 20H20V30H0zM20 30H30V40H20z\"/>",
                true);
    expect_part(svg, "<path class=\"m c1\" shape-rendering=\"crispEdges\" d=\"M20 20H30V30H20zM10 30H20V40H10z\"/>",
                true);
    expect_data(&cells, "# column row number framed; a block per panel\n"
                        "0 0 7 0\n1 0 7 0\n2 0 3 0\n0 1 NaN 0\n1 1 3 0\n2 1 7 0\n\n\n");
    expect_part(picture, ">expert 7</text>", true);
    expect_part(picture, ">&lt;script&gt;", true);
    expect_part(picture, "unused", false);
    free(picture);
    free(svg);
    struct text page = {0};
    panel.colour = one;
    draw_figure(&page, &cells, false);
    expect_part(page.data, "d=\"M12 0h10v10h-10z\"/></svg>expert 7</span>", true);
    expect_part(page.data, "data-colour", false); /* the page's filter is for configurations */
    text_free(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(an_unknown_interval_is_not_drawn),
        cmocka_unit_test(names_leave_room_for_signs),
        cmocka_unit_test(ranges_hold_every_value),
        cmocka_unit_test(a_picture_is_a_whole_document),
        cmocka_unit_test(the_same_figure_has_the_same_bytes),
        cmocka_unit_test(a_gap_interrupts_a_line),
        cmocka_unit_test(few_labels_are_round),
        cmocka_unit_test(values_stand_in_printed_cells),
        cmocka_unit_test(a_narrow_matrix_is_rounded),
        cmocka_unit_test(the_last_column_has_room_for_its_label),
        cmocka_unit_test(cells_share_a_path_per_shade),
        cmocka_unit_test(cells_have_the_colours_of_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
