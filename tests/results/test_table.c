/* What a terminal alone shows: colours, and as many columns as it has; query/forms.txt has the forms. */
#include <string.h>

#include "tests/test.h"

#include "results/table.h"

TEST(colour_marks_titles_and_what_stands_out)
{
    struct table table = {0};
    struct text text = {0};
    table_add_column(&table, &(struct table_column){.title = "loss", .decimals = 2});
    table_add_real(&table, 2);
    table_add_cell(&table, &(struct table_cell){.kind = CELL_REAL, .marked = true, .real = 1});
    table_render(&table, TABLE_TEXT, true, &text);
    assert_string_equal(text.data, "\033[1mloss\033[0m\n────\n2.00\n\033[1;32m1.00\033[0m\n");
    text_free(&text);
    table_free(&table);
}

/* A row: a name of 20 characters, a suite that may be left out, a mean with its ±, and a sentence. */
static void fill(struct table *table)
{
    table_add_column(table, &(struct table_column){.title = "row", .once = true});
    table_add_column(table, &(struct table_column){.title = "suite", .extra = 2});
    table_add_column(table, &(struct table_column){.title = "model", .extra = 1});
    table_add_column(table, &(struct table_column){.title = "last", .decimals = 1});
    table_add_column(table, &(struct table_column){.title = "last ±", .decimals = 1});
    table_add_column(table, &(struct table_column){.title = "message"});
    for (int i = 0; i < 2; i++) {
        table_add_text(table, "moe_adapters, random");
        table_add_text(table, "mini");
        table_add_text(table, "a model with a name of 32 columns");
        table_add_real(table, 58.25);
        table_add_real(table, i == 0 ? 4.75 : 10.5);
        table_add_text(table, i == 0 ? "the disk is full, and nothing of it can be written any more" : "");
    }
}

static void check_within(size_t width, const char *left_out, const char *expected)
{
    struct table table = {0};
    struct text text = {0}, gone = {0};
    fill(&table);
    text_add(&gone, "%s", "");
    table_render_within(&table, width, false, &text, &gone);
    assert_string_equal(gone.data, left_out);
    assert_string_equal(text.data, expected);
    text_free(&text);
    text_free(&gone);
    table_free(&table);
}

TEST(a_narrow_terminal_loses_columns_and_then_breaks_texts)
{
    check_within(200, "",
                 "row                   suite  model                                     last  message\n"
                 "────────────────────  ─────  ─────────────────────────────────  ───────────  "
                 "───────────────────────────────────────────────────────────\n"
                 "moe_adapters, random  mini   a model with a name of 32 columns  58.2 ±  4.8  "
                 "the disk is full, and nothing of it can be written any more\n"
                 "                      mini   a model with a name of 32 columns  58.2 ± 10.5  \n");
    check_within(90, "model",
                 "row                   suite         last  message\n"
                 "────────────────────  ─────  ───────────  ────────────────────────────────────────────────\n"
                 "moe_adapters, random  mini   58.2 ±  4.8  the disk is full, and nothing of it can be\n"
                 "                                          written any more\n"
                 "                      mini   58.2 ± 10.5  \n");
    check_within(80, "suite, model",
                 "row                          last  message\n"
                 "────────────────────  ───────────  ─────────────────────────────────────────────\n"
                 "moe_adapters, random  58.2 ±  4.8  the disk is full, and nothing of it can be\n"
                 "                                   written any more\n"
                 "                      58.2 ± 10.5  \n");
}

TEST(no_number_is_cut)
{
    struct table table = {0};
    struct text text = {0}, gone = {0};
    table_add_column(&table, &(struct table_column){.title = "a_long_title_of_numbers", .decimals = 8});
    table_add_column(&table, &(struct table_column){.title = "other", .decimals = 8});
    table_add_real(&table, 12345.12345678);
    table_add_real(&table, 12345.12345678);
    table_render_within(&table, 10, false, &text, &gone);
    assert_non_null(strstr(text.data, "12345.12345678  12345.12345678\n"));
    text_free(&text);
    text_free(&gone);
    table_free(&table);
}
