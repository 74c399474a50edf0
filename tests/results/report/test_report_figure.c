/* Axes of figures, and what is drawn of them. */
#include "tests/results/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "results/report/figure_drawing.h"
#include "results/report/picture.h"
#include "tests/results/report/sample_report.h"

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
    expect_ticks(0, 100, "0 20 40 60 80 100");
    expect_ticks(17.3, 29.1, "18 20 22 24 26 28");
    expect_ticks(0, 11, "0 2 4 6 8 10");
    expect_ticks(-1.2, 1.3, "-1 -0.5 0 0.5 1");
    expect_ticks(1e6, 3e6, "1e+06 1.5e+06 2e+06 2.5e+06 3e+06");
    expect_ticks(0.001, 0.0011, "0.001 0.00102 0.00104 0.00106 0.00108 0.0011");
}

static void counts_have_no_fractions(void **state)
{
    (void)state;
    double ticks[FIGURE_TICKS];
    assert_int_equal(figure_whole_ticks(0, 3, ticks), 4);
    assert_true(ticks[0] == 0 && ticks[1] == 1 && ticks[2] == 2 && ticks[3] == 3);
}

/* Where one seed has no interval, none is drawn. */
static void an_unknown_interval_is_not_drawn(void **state)
{
    (void)state;
    const struct figure_interval rows[] = {{"a", 0, 50, 45, 55}, {"b", 1, 52, (double)NAN, (double)NAN}};
    const struct figure_panel panel = {.title = "Last", .interval = rows, .intervals = 2};
    const struct figure figure = {.name = "intervals",
                                  .title = "Last",
                                  .kind = FIGURE_INTERVALS,
                                  .panel = &panel,
                                  .panels = 1,
                                  .low = (double)NAN,
                                  .high = (double)NAN};
    struct text svg = {0};
    assert_ok(picture_svg(&svg, &figure, PICTURE_PAGE, &error));
    assert_non_null(strstr(svg.data, "<path class=\"line c0\""));
    assert_null(strstr(svg.data, "<path class=\"line c1\""));
    assert_non_null(strstr(svg.data, "<path class=\"m c1\""));
    text_free(&svg);
}

/* The number of an attribute behind a class. */
static double number_of(const char *svg, const char *class, const char *attribute)
{
    const char *at = strstr(svg, class);
    assert_non_null(at);
    at = strstr(at, attribute);
    assert_non_null(at);
    return strtod(at + strlen(attribute), NULL);
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
        const struct figure figure = {.name = "intervals",
                                      .title = "Last",
                                      .kind = FIGURE_INTERVALS,
                                      .panel = &panel,
                                      .panels = 1,
                                      .low = (double)NAN,
                                      .high = (double)NAN,
                                      .decimals = 2,
                                      .zero = true};
        struct text svg = {0};
        assert_ok(picture_svg(&svg, &figure, PICTURE_COLUMN, &error));
        const char *body = strstr(svg.data, "</style>");
        assert_non_null(strstr(body, "−0.23 [−11.52, 1.06]"));
        double name_end = number_of(body, "class=\"tl\"", " x=\"") + 7 * (double)length,
               value_begin = number_of(body, "class=\"ty\"", " x=\"") - 6.4 * 20,
               apart = number_of(body, "class=\"ty\"", " y=\"") - number_of(body, "class=\"tl\"", " y=\"");
        beside += apart < 11;
        assert_true(apart >= 11 || name_end < value_begin);
        text_free(&svg);
    }
    assert_true(beside > 0);
}

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
    struct figure empty = {.kind = FIGURE_LINES, .low = (double)NAN, .high = (double)NAN};
    range = figure_range(&empty, 0);
    assert_true(range.high > range.low);
    range = figure_range_x(&lines);
    assert_true(range.low == 0 && range.high == 2);
}

static void expect_part(const struct text *text, const char *part)
{
    if (strstr(text->data, part) == NULL)
        assert_string_equal(text->data, part);
}

/* A document of its own: escaped names, colours instead of the page's variables, a legend of what is drawn. */
static void a_picture_is_a_whole_document(void **state)
{
    (void)state;
    struct text svg = {0};
    assert_ok(picture_svg(&svg, &lines, PICTURE_PAGE, &error));
    expect_part(&svg, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    expect_part(&svg, ".c0 { stroke: #0072b2; }");
    expect_part(&svg, ">one</text>");
    expect_part(&svg, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;");
    assert_null(strstr(svg.data, "<script"));
    assert_null(strstr(svg.data, "var("));
    assert_null(strchr(svg.data, '\x01'));
    text_free(&svg);
}

/* The style's only other face is the one that fonts.c embeds for titles. */
static void titles_alone_have_another_face(void **state)
{
    (void)state;
    struct text svg = {0};
    assert_ok(picture_svg(&svg, &lines, PICTURE_PAGE, &error));
    char *fonts = strstr(svg.data, "@font-face");
    assert_non_null(fonts);
    *fonts = 0;
    expect_part(&svg, "\n.panels text.pt { font-size: 11px; font-weight: 600; ");
    assert_null(strstr(strstr(svg.data, "font-weight") + 1, "font-weight"));
    assert_null(strstr(svg.data, "font-style"));
    text_free(&svg);
}

/* The words fit on the shades, and frames are around the cells. */
static void values_stand_in_printed_cells(void **state)
{
    (void)state;
    const double value[] = {1, 9, (double)NAN, 4};
    const bool framed[] = {true, false, false, false};
    const char *names[] = {"first", SAMPLE_REPORT_HARM};
    struct figure_panel panel = {.title = "heat", .value = value, .framed = framed};
    struct figure heat = {.name = "heat",
                          .title = "heat",
                          .kind = FIGURE_HEAT,
                          .panel = &panel,
                          .panels = 1,
                          .x_label = names,
                          .columns = 2,
                          .y_label = names,
                          .rows = 2,
                          .low = 0,
                          .high = 9,
                          .decimals = 1,
                          .printed = true};
    struct text svg = {0};
    struct drawing_size size = draw_panel(&svg, &heat, 0, 0);
    expect_part(&svg, "class=\"tx low\"");
    expect_part(&svg, ">1.0</text>");
    expect_part(&svg, "class=\"tx high\"");
    expect_part(&svg, "<path class=\"box\"");
    assert_true(size.width > 300 && size.height > 150); /* long names have room, at most so much */
    assert_true(size.width < 600 && size.height < 400);
    text_free(&svg);
}

/* In the width of a column "100.0" has no room, and "100" has. */
static void a_narrow_matrix_is_rounded(void **state)
{
    (void)state;
    const char *names[11];
    double value[11 * 11];
    for (size_t i = 0; i < 11 * 11; i++)
        value[i] = 41.6;
    for (size_t i = 0; i < 11; i++)
        names[i] = "task";
    struct figure_panel panel = {.title = "", .value = value};
    struct figure heat = {.name = "heat",
                          .title = "none",
                          .kind = FIGURE_HEAT,
                          .x_title = "test on task",
                          .y_title = "after training on",
                          .value_title = "accuracy, %",
                          .panel = &panel,
                          .panels = 1,
                          .x_label = names,
                          .columns = 11,
                          .y_label = names,
                          .rows = 11,
                          .low = 0,
                          .high = 100,
                          .decimals = 1,
                          .printed = true};
    struct text wide = {0}, narrow = {0};
    assert_ok(picture_svg(&wide, &heat, PICTURE_PAGE, &error));
    assert_ok(picture_svg(&narrow, &heat, PICTURE_COLUMN, &error));
    expect_part(&wide, "width=\"495pt\"");
    expect_part(&narrow, "width=\"234pt\"");
    expect_part(&wide, ">41.6</text>");
    expect_part(&narrow, ">42</text>");
    assert_null(strstr(narrow.data, ">41.6</text>"));
    expect_part(&narrow, ">test on task</text>");
    expect_part(&narrow, ">after training on</text>");
    expect_part(&narrow, ">accuracy, %</text>");
    text_free(&wide);
    text_free(&narrow);
}

/* Marks are in the legend of a figure whose curves have them. */
static void a_legend_has_the_marks_of_its_curves(void **state)
{
    (void)state;
    struct figure unmarked = lines;
    unmarked.points = false;
    struct text with = {0}, without = {0};
    assert_ok(picture_svg(&with, &lines, PICTURE_COLUMN, &error));
    assert_ok(picture_svg(&without, &unmarked, PICTURE_COLUMN, &error));
    assert_non_null(strstr(with.data, "class=\"m c0\""));
    assert_null(strstr(without.data, "class=\"m c0\""));
    text_free(&with);
    text_free(&without);
}

static void data_comes_in_blocks(void **state)
{
    (void)state;
    struct text data = {0};
    figure_data(&data, &lines);
    assert_string_equal(data.data, "# x y low high; a block per panel and series\n"
                                   "0 10 5 15\n1 NaN 15 25\n2 30 25 40\n\n\n"
                                   "0 5\n1 15\n\n\n"
                                   "0 10 5 15\n1 NaN 15 25\n2 30 25 40\n\n\n");
    text_free(&data);
}

static void a_gap_interrupts_a_line(void **state)
{
    (void)state;
    struct text svg = {0};
    draw_panel(&svg, &lines, 0, 0);
    const char *line = strstr(svg.data, "<path class=\"line c0\" d=\"M");
    assert_non_null(line);
    size_t size = strcspn(line + 26, "\"");
    assert_null(memchr(line + 26, 'L', size)); /* two points with a gap between them: no stroke */
    assert_non_null(memchr(line + 26, 'M', size));
    assert_non_null(strstr(svg.data, "class=\"mark\""));
    assert_non_null(strstr(svg.data, "class=\"band c0\""));
    assert_null(strstr(svg.data, "class=\"band c1\""));
    text_free(&svg);
}

/* Where 5, 10, 15 and 20 have no room side by side, it is 10 and 20 that are named. */
static void few_labels_are_round(void **state)
{
    (void)state;
    const double iterations[] = {1, 10, 20};
    const struct figure_series loss = {.points = 3, .x = iterations, .y = low};
    const struct figure_panel panel = {.title = "loss", .series = &loss, .series_count = 1, .mark = (double)NAN};
    const struct figure figure = {.kind = FIGURE_LINES, .panel = &panel, .panels = 1, .low = 0, .high = 0.5};
    struct text svg = {0};
    draw_panel(&svg, &figure, 0, 140);
    assert_non_null(strstr(svg.data, ">10</text>"));
    assert_non_null(strstr(svg.data, ">20</text>"));
    assert_null(strstr(svg.data, ">5</text>"));
    assert_null(strstr(svg.data, ">15</text>"));
    text_free(&svg);
}

/* A file cuts off what leaves its panel. */
static void the_last_column_has_room_for_its_label(void **state)
{
    (void)state;
    double value[16] = {0}, at = 0;
    const char *names[16];
    for (size_t i = 0; i < 16; i++)
        names[i] = i < 15 ? "0" : "15";
    const struct figure_panel panel = {.title = "heat", .value = value, .mark = (double)NAN};
    const struct figure heat = {.kind = FIGURE_HEAT,
                                .panel = &panel,
                                .panels = 1,
                                .x_label = names,
                                .columns = 16,
                                .y_label = names,
                                .rows = 1,
                                .low = 0,
                                .high = 9};
    struct text svg = {0};
    struct drawing_size size = draw_panel(&svg, &heat, 0, 140);
    for (const char *text = svg.data; (text = strstr(text, "<text class=\"tx\"")) != NULL; text++)
        if (sscanf(text, "<text class=\"tx\" x=\"%lf\"", &at) == 1 && strstr(text, ">15<") != NULL)
            assert_true(at + draw_width("15", 2) / 2 <= size.width);
    assert_true(at > 100);
    text_free(&svg);
}

static void cells_share_a_path_per_shade(void **state)
{
    (void)state;
    const double value[] = {0, 0, 9, (double)NAN, 9, 4.5};
    const bool framed[] = {false, false, true, false, false, false};
    const char *names[] = {"0", "1", "2"};
    struct figure_panel panel = {.title = "heat", .value = value, .framed = framed, .mark = (double)NAN};
    struct figure heat = {.name = "heat",
                          .title = "heat",
                          .kind = FIGURE_HEAT,
                          .panel = &panel,
                          .panels = 1,
                          .x_label = names,
                          .columns = 3,
                          .y_label = names,
                          .rows = 2,
                          .low = 0,
                          .high = 9};
    struct text svg = {0}, data = {0};
    draw_panel(&svg, &heat, 0, 0);
    size_t paths = 0;
    for (const char *at = svg.data; (at = strstr(at, "<path class=\"h")) != NULL; at++)
        paths++;
    assert_int_equal(paths, 3);
    figure_data(&data, &heat);
    assert_string_equal(data.data, "# column row value; a block per panel, and one of its framed cells\n"
                                   "0 0 0\n1 0 0\n2 0 9\n0 1 NaN\n1 1 9\n2 1 4.5\n\n\n2 0\n\n\n");
    text_free(&svg);
    text_free(&data);
}

/* Neighbours in a row are one rectangle; numbers, not colours, are in the data; cells name their colours even if there is one. */
static void cells_have_the_colours_of_their_numbers(void **state)
{
    (void)state;
    const double value[] = {7, 7, 3, (double)NAN, 3, 7};
    const uint8_t colour[] = {0, 0, 1, 1, 1, 0}, one[] = {0, 0, 0, 0, 0, 0};
    const char *experts[] = {"expert 7", SAMPLE_REPORT_HARM, "unused"};
    struct figure_panel panel = {.title = "cells", .value = value, .colour = colour, .mark = (double)NAN};
    const struct figure cells = {.name = "cells",
                                 .title = "cells",
                                 .caption = "",
                                 .kind = FIGURE_CELLS,
                                 .panel = &panel,
                                 .panels = 1,
                                 .legend = experts,
                                 .legend_count = 3,
                                 .columns = 3,
                                 .rows = 2};
    struct text svg = {0}, data = {0};
    struct drawing_size size = draw_panel(&svg, &cells, 0, 30);
    assert_true(size.width == 30 && size.height == 40);
    expect_part(&svg, "<path class=\"m c0\" shape-rendering=\"crispEdges\" d=\"M0 20H20V30H0zM20 30H30V40H20z\"/>");
    expect_part(&svg, "<path class=\"m c1\" shape-rendering=\"crispEdges\" d=\"M20 20H30V30H20zM10 30H20V40H10z\"/>");
    figure_data(&data, &cells);
    assert_string_equal(data.data, "# column row number; a block per panel\n"
                                   "0 0 7\n1 0 7\n2 0 3\n0 1 NaN\n1 1 3\n2 1 7\n\n\n");
    text_clear(&svg);
    assert_ok(picture_svg(&svg, &cells, PICTURE_COLUMN, &error));
    expect_part(&svg, ">expert 7</text>");
    expect_part(&svg, ">&lt;script&gt;");
    assert_null(strstr(svg.data, "unused"));
    panel.colour = one;
    text_clear(&svg);
    draw_figure(&svg, &cells, false);
    expect_part(&svg, "d=\"M12 0h10v10h-10z\"/></svg>expert 7</span>");
    assert_null(strstr(svg.data, "data-colour")); /* the page's filter is for configurations */
    text_free(&svg);
    text_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(counts_have_no_fractions),
        cmocka_unit_test(an_unknown_interval_is_not_drawn),
        cmocka_unit_test(names_leave_room_for_signs),
        cmocka_unit_test(ranges_hold_every_value),
        cmocka_unit_test(a_picture_is_a_whole_document),
        cmocka_unit_test(titles_alone_have_another_face),
        cmocka_unit_test(values_stand_in_printed_cells),
        cmocka_unit_test(a_narrow_matrix_is_rounded),
        cmocka_unit_test(a_legend_has_the_marks_of_its_curves),
        cmocka_unit_test(data_comes_in_blocks),
        cmocka_unit_test(a_gap_interrupts_a_line),
        cmocka_unit_test(few_labels_are_round),
        cmocka_unit_test(the_last_column_has_room_for_its_label),
        cmocka_unit_test(cells_share_a_path_per_shade),
        cmocka_unit_test(cells_have_the_colours_of_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
