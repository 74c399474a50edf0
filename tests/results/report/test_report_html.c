/* Text of a database in a page, and tables. */
#include "tests/results/check.h"

#include <math.h>

#include "results/report/html.h"

static void expect_escaped(const char *string, const char *expected)
{
    struct text html = {0};
    text_add(&html, "%s", "");
    html_escape(&html, string);
    assert_string_equal(html.data, expected);
    text_free(&html);
}

static void nothing_of_a_text_is_markup(void **state)
{
    (void)state;
    expect_escaped("", "");
    expect_escaped("plain · text", "plain · text");
    expect_escaped("<b a=\"1\" c='2'>&amp;", "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
    expect_escaped("two\nlines\tand\x01 control\x7f", "two lines and\xef\xbf\xbd control\xef\xbf\xbd");
    expect_escaped("\xff\xc3(\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    expect_escaped("a\xe2\x80\xae"
                   "b",
                   "a\xef\xbf\xbd"
                   "b"); /* would turn the writing direction */
}

static void expect_number(double value, int decimals, const char *expected)
{
    struct text html = {0};
    html_number(&html, value, decimals);
    assert_string_equal(html.data, expected);
    text_free(&html);
}

static void numbers_are_for_people(void **state)
{
    (void)state;
    expect_number(1.25, 1, "1.2");
    expect_number(-3.5, 1, "−3.5");
    expect_number(-0.01, 1, "0.0");
    expect_number(1e-4, DECIMALS_ALL, "0.0001");
    expect_number((double)NAN, 1, "–");
}

static void shades_span_the_range(void **state)
{
    (void)state;
    assert_int_equal(html_level(0, 0, 100), 0);
    assert_int_equal(html_level(50, 0, 100), HTML_LEVELS / 2);
    assert_int_equal(html_level(100, 0, 100), HTML_LEVELS - 1);
    assert_int_equal(html_level(-5, 0, 100), 0);
    assert_int_equal(html_level(500, 0, 100), HTML_LEVELS - 1);
    assert_int_equal(html_level(1, 1, 1), 0);
    assert_int_equal(html_level((double)NAN, 0, 1), 0);
}

static void expect_part(const struct text *html, const char *part)
{
    if (strstr(html->data, part) == NULL)
        assert_string_equal(html->data, part);
}

static void a_table_has_all_digits_and_its_best_in_bold(void **state)
{
    (void)state;
    struct table table = {0};
    struct text html = {0};
    table_add_column(&table, &(struct table_column){.title = "a&b"});
    table_add_column(&table, &(struct table_column){.title = "Last", .decimals = 1, .best = BEST_HIGHEST});
    table_add_column(&table, &(struct table_column){.title = "Last ±", .decimals = 1});
    table_add_text(&table, "<x>");
    table_add_real(&table, 200.0 / 3);
    table_add_empty(&table);
    table_add_text(&table, "y");
    table_add_real(&table, 70);
    table_add_real(&table, 1.5);
    bool framed[] = {false, true, false, false, false, false};
    html_table(
        &html,
        &(struct html_table){
            .table = &table, .name = "t", .caption = "n < 3", .heat = true, .low = 0, .high = 100, .framed = framed});
    expect_part(&html, "<th scope=\"col\" data-name=\"a&amp;b\">a&amp;b</th>");
    expect_part(&html, "data-name=\"Last ±\">±</th>");
    expect_part(&html, "<th scope=\"row\">&lt;x&gt;</th>");
    expect_part(&html, "<td class=\"n h6 framed\" data-v=\"66.66666666666667\">66.7</td>");
    expect_part(&html, "<td class=\"n\" data-v=\"\">–</td></tr>\n");
    expect_part(&html, "data-v=\"70\"><b>70.0</b></td>");
    expect_part(&html, "n &lt; 3");
    table_free(&table);
    text_free(&html);
}

static void what_reads_the_same_is_as_good(void **state)
{
    (void)state;
    struct table table = {0};
    struct text html = {0};
    static const double values[] = {70.01, 70.04, 69.94};
    table_add_column(&table, &(struct table_column){.title = "run"});
    table_add_column(&table, &(struct table_column){.title = "Last", .decimals = 1, .best = BEST_HIGHEST});
    for (int i = 0; i < 3; i++) {
        table_add_integer(&table, i);
        table_add_real(&table, values[i]);
    }
    html_table(&html, &(struct html_table){.table = &table, .name = "t"});
    expect_part(&html, "data-v=\"70.01\"><b>70.0</b>");
    expect_part(&html, "data-v=\"70.04\"><b>70.0</b>");
    expect_part(&html, "data-v=\"69.94\">69.9<");
    table_begin_block(&table);
    table_add_integer(&table, 3);
    table_add_real(&table, 30);
    text_free(&html);
    html_table(&html, &(struct html_table){.table = &table, .name = "t"});
    assert_null(strstr(html.data, "<b>"));
    table_free(&table);
    text_free(&html);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_of_a_text_is_markup),    cmocka_unit_test(numbers_are_for_people),
        cmocka_unit_test(shades_span_the_range),          cmocka_unit_test(a_table_has_all_digits_and_its_best_in_bold),
        cmocka_unit_test(what_reads_the_same_is_as_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
