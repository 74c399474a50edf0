/* Colours, which the program prints on a terminal alone; query/forms.txt has the forms. */
#include "tests/test.h"

#include "results/table.h"

TEST(colour_marks_titles_and_the_best)
{
    struct table table = {0};
    struct text text = {0};
    table_add_column(&table, &(struct table_column){.title = "loss", .decimals = 2, .best = BEST_LOWEST});
    table_add_real(&table, 2);
    table_add_real(&table, 1);
    table_render(&table, TABLE_TEXT, true, &text);
    assert_string_equal(text.data, "\033[1mloss\033[0m\n────\n2.00\n\033[1;32m1.00\033[0m\n");
    text_free(&text);
    table_free(&table);
}
