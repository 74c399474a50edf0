#include "tests/results/check.h"

#include <jansson.h>
#include <math.h>

#include "results/table.h"

/* Names that every form has to escape, numbers, a missing one, a tie for the best. */
static void make(struct table *table)
{
    *table = (struct table){0};
    table_add_column(table, &(struct table_column){.title = "na_me"});
    table_add_column(table, &(struct table_column){.title = "n"});
    table_add_column(table, &(struct table_column){.title = "last", .decimals = 1, .best = BEST_HIGHEST});
    table_add_text(table, "a,\"b\" & <c>|é");
    table_add_integer(table, -3);
    table_add_real(table, 1.0 / 3 + 97);
    table_add_text(table, "two\nlines_100%");
    table_add_integer(table, INT64_MAX);
    table_add_real(table, 97.31);
    table_add_text(table, NULL);
    table_add_empty(table);
    table_add_real(table, NAN);
    table_add_text(table, "x");
    table_add_integer(table, 0);
    table_add_real(table, -0.01);
}

static void assert_renders(const struct table *table, enum table_format format, bool colour, const char *expected)
{
    struct text text = {0};
    assert_ok(table_render(table, format, colour, &text, &error));
    assert_string_equal(text.data, expected);
    text_free(&text);
}

static void aligned_text(void **state)
{
    (void)state;
    struct table table;
    make(&table);
    assert_renders(&table, TABLE_TEXT, false,
                   "na_me                              n  last\n"
                   "───────────────  ───────────────────  ────\n"
                   "a,\"b\" & <c>|é                     -3  97.3\n"
                   "two\\nlines_100%  9223372036854775807  97.3\n"
                   "                                          \n"
                   "x                                  0   0.0\n");
    table_free(&table);
}

static void colour_marks_titles_and_the_best(void **state)
{
    (void)state;
    struct table table = {0};
    table_add_column(&table, &(struct table_column){.title = "loss", .decimals = 2, .best = BEST_LOWEST});
    table_add_real(&table, 2);
    table_add_real(&table, 1);
    assert_renders(&table, TABLE_TEXT, true, "\033[1mloss\033[0m\n────\n2.00\n\033[1;32m1.00\033[0m\n");
    table_free(&table);
}

static void csv_follows_rfc_4180(void **state)
{
    (void)state;
    struct table table;
    make(&table);
    assert_renders(&table, TABLE_CSV, true,
                   "na_me,n,last\r\n"
                   "\"a,\"\"b\"\" & <c>|é\",-3,97.33333333333333\r\n"
                   "two\\nlines_100%,9223372036854775807,97.31\r\n"
                   ",,\r\n"
                   "x,0,-0.01\r\n");
    table_free(&table);
}

static void json_reads_back(void **state)
{
    (void)state;
    struct table table;
    struct text text = {0};
    make(&table);
    assert_ok(table_render(&table, TABLE_JSON, false, &text, &error));
    json_t *rows = json_loads(text.data, 0, NULL);
    assert_int_equal(json_array_size(rows), 4);
    const json_t *first = json_array_get(rows, 0);
    assert_string_equal(json_string_value(json_object_get(first, "na_me")), "a,\"b\" & <c>|é");
    assert_int_equal(json_integer_value(json_object_get(first, "n")), -3);
    assert_true(json_real_value(json_object_get(first, "last")) == 1.0 / 3 + 97);
    assert_true(json_is_null(json_object_get(json_array_get(rows, 2), "last")));
    json_decref(rows);
    text_free(&text);
    table_free(&table);
}

static void markdown_escapes(void **state)
{
    (void)state;
    struct table table;
    make(&table);
    assert_renders(&table, TABLE_MARKDOWN, false,
                   "| na\\_me | n | last |\n"
                   "| --- | ---: | ---: |\n"
                   "| a,\"b\" &amp; &lt;c>\\|é | -3 | **97.3** |\n"
                   "| two\\\\nlines\\_100% | 9223372036854775807 | **97.3** |\n"
                   "|  |  |  |\n"
                   "| x | 0 | 0.0 |\n");
    table_free(&table);
}

static void latex_is_booktabs(void **state)
{
    (void)state;
    struct table table;
    make(&table);
    assert_renders(&table, TABLE_LATEX, false,
                   "\\begin{tabular}{lrr}\n"
                   "\\toprule\n"
                   "na\\_me & n & last \\\\\n"
                   "\\midrule\n"
                   "a,\"b\" \\& $<$c$>$$|$é & $-$3 & \\textbf{97.3} \\\\\n"
                   "two\\textbackslash{}nlines\\_100\\% & 9223372036854775807 & \\textbf{97.3} \\\\\n"
                   " &  &  \\\\\n"
                   "x & 0 & 0.0 \\\\\n"
                   "\\bottomrule\n"
                   "\\end{tabular}\n");
    table_free(&table);
}

/* What begins a row is no argument of the row's end before it; signs that pdfLaTeX does not know are commands. */
static void latex_takes_no_cell_for_a_command(void **state)
{
    (void)state;
    struct table table = {0};
    table_add_column(&table, &(struct table_column){.title = "Last ±"});
    table_add_text(&table, "[1] a − b");
    table_add_text(&table, "*");
    table_add_text(&table, "-");
    table_add_real(&table, -1);
    assert_renders(&table, TABLE_LATEX, false,
                   "\\begin{tabular}{l}\n\\toprule\nLast $\\pm$ \\\\\n\\midrule\n{}[1] a $-$ b \\\\\n{}* \\\\\n- \\\\\n"
                   "$-$1 \\\\\n\\bottomrule\n\\end{tabular}\n");
    table_free(&table);
}

/* Two blocks of two rows; 9 is the first one's best, though the second has better. */
static void blocks_have_rules_and_best_cells_of_their_own(void **state)
{
    (void)state;
    struct table table = {0};
    table_add_column(&table, &(struct table_column){.title = "metric", .once = true});
    table_add_column(&table, &(struct table_column){.title = "x", .decimals = 0, .best = BEST_HIGHEST});
    table_begin_block(&table); /* no rule above the first row */
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            table_begin_block(&table);
        table_add_text(&table, i < 2 ? "last" : "mean");
        table_add_real(&table, i < 2 ? 8 + i : 20 - i);
    }
    assert_renders(&table, TABLE_TEXT, false,
                   "metric   x\n──────  ──\nlast     8\n         9\n──────  ──\nmean    18\n        17\n");
    assert_renders(&table, TABLE_LATEX, false,
                   "\\begin{tabular}{lr}\n\\toprule\nmetric & x \\\\\n\\midrule\nlast & 8 \\\\\n & \\textbf{9} \\\\\n"
                   "\\midrule\nmean & \\textbf{18} \\\\\n & 17 \\\\\n\\bottomrule\n\\end{tabular}\n");
    assert_renders(&table, TABLE_MARKDOWN, false,
                   "| metric | x |\n| --- | ---: |\n| last | 8 |\n|  | **9** |\n| mean | **18** |\n|  | 17 |\n");
    assert_renders(&table, TABLE_CSV, false, "metric,x\r\nlast,8\r\nlast,9\r\nmean,18\r\nmean,17\r\n");
    table_free(&table);
}

/* What a hostile database may hold: escape sequences, broken UTF-8, endless cells. */
static void hostile_text_is_made_harmless(void **state)
{
    (void)state;
    static char endless[100000];
    memset(endless, 'w', sizeof endless - 1);
    struct table table = {0};
    table_add_column(&table, &(struct table_column){.title = "t"});
    table_add_text(&table, "\033[2Jgone\xff\xc3");
    assert_renders(&table, TABLE_TEXT, false, "t\n───────────────────\n\\x1b[2Jgone\\xff\\xc3\n");
    assert_renders(&table, TABLE_JSON, false, "[\n  {\"t\": \"\\u001B[2Jgone\\uFFFD\\uFFFD\"}\n]\n");
    table_add_text(&table, endless);
    struct text text = {0};
    assert_ok(table_render(&table, TABLE_TEXT, false, &text, &error));
    assert_true(text.size < 1000 && strstr(text.data, "www…\n"));
    text_clear(&text);
    assert_ok(table_render(&table, TABLE_CSV, false, &text, &error));
    assert_true(text.size > sizeof endless);
    text_free(&text);
    table_free(&table);
}

/* A spreadsheet shows the text of a cell instead of running it; numbers stay numbers, negative ones too. */
static void spreadsheets_find_no_formula(void **state)
{
    (void)state;
    struct table table = {0};
    table_add_column(&table, &(struct table_column){.title = "=SUM(A1)"});
    table_add_column(&table, &(struct table_column){.title = "n"});
    static const char *const texts[] = {
        "=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1,2)", "\t=1", "\r=1", "-1.5", "a=b"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        table_add_text(&table, texts[i]);
        table_add_real(&table, -0.5);
    }
    assert_renders(&table, TABLE_CSV, false,
                   "'=SUM(A1),n\r\n'=cmd|' /C calc'!A0,-0.5\r\n'+1+1,-0.5\r\n'-1+1,-0.5\r\n\"'@SUM(1,2)\",-0.5\r\n"
                   "\\t=1,-0.5\r\n\\r=1,-0.5\r\n-1.5,-0.5\r\na=b,-0.5\r\n");
    table_free(&table);
}

/* The same text in every form. */
static void control_characters_are_shown_in_every_form(void **state)
{
    (void)state;
    struct table table = {0};
    table_add_column(&table, &(struct table_column){.title = "t"});
    table_add_text(&table, "a\x1b]0;b\x07\x7f\xc2\x9b\xe2\x80\xae");
    assert_renders(&table, TABLE_CSV, false, "t\r\na\\x1b]0;b\\x07\\x7f\\x9b\\u202e\r\n");
    assert_renders(&table, TABLE_JSON, false, "[\n  {\"t\": \"a\\u001B]0;b\\u0007\\u007F\\u009B\\u202E\"}\n]\n");
    assert_renders(&table, TABLE_MARKDOWN, false, "| t |\n| --- |\n| a\\\\x1b]0;b\\\\x07\\\\x7f\\\\x9b\\\\u202e |\n");
    assert_renders(
        &table, TABLE_LATEX, false,
        "\\begin{tabular}{l}\n\\toprule\nt \\\\\n\\midrule\na\\textbackslash{}x1b]0;b\\textbackslash{}x07"
        "\\textbackslash{}x7f\\textbackslash{}x9b\\textbackslash{}u202e \\\\\n\\bottomrule\n\\end{tabular}\n");
    table_free(&table);
}

static void empty_tables_have_a_form(void **state)
{
    (void)state;
    struct table table = {0};
    assert_renders(&table, TABLE_JSON, false, "[]\n");
    table_add_column(&table, &(struct table_column){.title = "run"});
    assert_renders(&table, TABLE_TEXT, false, "run\n───\n");
    assert_renders(&table, TABLE_CSV, false, "run\r\n");
    assert_renders(&table, TABLE_MARKDOWN, false, "| run |\n| --- |\n");
    table_free(&table);
}

static void formats_are_known_by_name(void **state)
{
    (void)state;
    enum table_format format;
    assert_ok(table_format_parse("latex", &format, &error));
    assert_int_equal(format, TABLE_LATEX);
    assert_fails(table_format_parse("jsn", &format, &error), ERROR_ARGUMENT, "did you mean \"json\"?");
    assert_fails(table_format_parse("zzzzzzzz", &format, &error), ERROR_ARGUMENT, "expected table, csv, json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aligned_text),
        cmocka_unit_test(colour_marks_titles_and_the_best),
        cmocka_unit_test(csv_follows_rfc_4180),
        cmocka_unit_test(json_reads_back),
        cmocka_unit_test(markdown_escapes),
        cmocka_unit_test(latex_is_booktabs),
        cmocka_unit_test(latex_takes_no_cell_for_a_command),
        cmocka_unit_test(blocks_have_rules_and_best_cells_of_their_own),
        cmocka_unit_test(hostile_text_is_made_harmless),
        cmocka_unit_test(spreadsheets_find_no_formula),
        cmocka_unit_test(control_characters_are_shown_in_every_form),
        cmocka_unit_test(empty_tables_have_a_form),
        cmocka_unit_test(formats_are_known_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
