/* Grids of sweeps: short names, lists, ranges, the order of combinations; harness/commands/program.txt has what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/settings.h"
#include "harness/sweep/grid.h"
#include "tests/test.h"

/* The grid of words. */
#define PARSE(values, ...) parse(values, (const char *const[]){__VA_ARGS__, NULL})
static struct grid parse(enum grid_values values, const char *const *words)
{
    struct grid grid;
    struct error error;
    size_t count = 0;
    while (words[count] != NULL)
        count++;
    if (grid_parse(&grid, words, count, values, settings_sections, &error) != OK)
        fail_msg("%s: %s", words[0], error.message);
    return grid;
}

static void expect_values(const struct grid_axis *axis, const char *joined)
{
    char found[256] = "";
    for (size_t i = 0; i < axis->values.count; i++) {
        strncat(found, i > 0 ? "|" : "", sizeof found - strlen(found) - 1);
        strncat(found, axis->values.items[i], sizeof found - strlen(found) - 1);
    }
    assert_string_equal(found, joined);
}

TEST(lists_and_ranges)
{
    static const struct {
        const char *word, *key, *values;
    } cases[] = {
        {"merge.policy=none,most_used", "merge.policy", "none|most_used"},
        {"merge.every=50", "merge.every", "50"},
        {"seed=1..5", "run.seeds", "1|2|3|4|5"},
        {"seed=3..3", "run.seeds", "3"},
        {"seed=7,1..3,9", "run.seeds", "7|1|2|3|9"},
        {"warmup=-2..1", "training.warmup", "-2|-1|0|1"},
        {"data.root=../data,a..b,1..x", "data.root", "../data|a..b|1..x"},
        {"data.order=mnist dtd,dtd mnist", "data.order", "mnist dtd|dtd mnist"},
        {"tasks.mnist.learning_rate=1e-3,1e-4", "tasks.mnist.learning_rate", "1e-3|1e-4"},
        {"order_name=a=b", "data.order_name", "a=b"},
        {"every=1", "merge.every", "1"},
        {"seeds=1", "run.seeds", "1"},
        {"method=1", "method.name", "1"},
        {"experts=1", "adapter.experts", "1"},
        {"selector=1", "selector.kind", "1"},
        {"weights=1", "model.weights", "1"},
        {"policy=1", "merge.policy", "1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grid grid = PARSE(GRID_EXPAND, cases[i].word);
        size_t name = strcspn(cases[i].word, "=");
        assert_memory_equal(grid.axes[0].name, cases[i].word, name);
        assert_int_equal(strlen(grid.axes[0].name), name);
        assert_string_equal(grid.axes[0].key, cases[i].key);
        expect_values(&grid.axes[0], cases[i].values);
        grid_free(&grid);
    }
}

/* Every combination once, the last axis fastest; seeds make no combinations wherever they stand. */
TEST(combinations)
{
    static const char *const expected[][3] = {
        {"merge.policy=none", "run.seeds=1,2,3", "merge.every=50"},
        {"merge.policy=none", "run.seeds=1,2,3", "merge.every=100"},
        {"merge.policy=none", "run.seeds=1,2,3", "merge.every=200"},
        {"merge.policy=most_used", "run.seeds=1,2,3", "merge.every=50"},
        {"merge.policy=most_used", "run.seeds=1,2,3", "merge.every=100"},
        {"merge.policy=most_used", "run.seeds=1,2,3", "merge.every=200"},
    };
    struct grid grid = PARSE(GRID_EXPAND, "policy=none,most_used", "seed=1..3", "every=50,100,200");
    assert_int_equal(grid.combinations, 6);
    assert_null(grid_value(&grid, 1, 0));
    assert_string_equal(grid_value(&grid, 0, 2), "none");
    assert_string_equal(grid_value(&grid, 2, 2), "200");
    for (size_t c = 0; c < grid.combinations; c++) {
        struct strings overrides = {0};
        grid_overrides(&grid, c, &overrides);
        assert_int_equal(overrides.count, 3);
        for (size_t i = 0; i < 3; i++)
            assert_string_equal(overrides.items[i], expected[c][i]);
        strings_free(&overrides);
    }
    grid_free(&grid);
}

/* The rows of a suite are the first axis, unless one of the grid chooses among them. */
TEST(rows_vary_slowest)
{
    char lwf[] = "LwF", range[] = "1..3", key[] = "run.row", *names[] = {lwf, range};
    const struct suite_rows rows = {.names = {2, names}, .key = key};
    struct grid grid = PARSE(GRID_EXPAND, "every=1,2", "seed=1..3");
    struct error error;
    assert_int_equal(grid_add_rows(&grid, &rows, &error), OK);
    assert_int_equal(grid.combinations, 4);
    assert_string_equal(grid.axes[0].key, "run.row");
    assert_string_equal(grid_value(&grid, 0, 1), "LwF");
    assert_string_equal(grid_value(&grid, 0, 2), "1..3");
    assert_string_equal(grid_value(&grid, 1, 3), "2");
    grid_free(&grid);
    grid = PARSE(GRID_LITERAL, "row=LwF");
    assert_int_equal(grid_add_rows(&grid, &rows, &error), OK);
    assert_int_equal(grid.combinations, 1);
    assert_int_equal(grid.count, 1);
    grid_free(&grid);
}

TEST(nothing_is_one_combination)
{
    struct grid grid;
    struct error error;
    assert_int_equal(grid_parse(&grid, NULL, 0, GRID_EXPAND, settings_sections, &error), OK);
    assert_int_equal(grid.combinations, 1);
    grid_overrides(&grid, 0, NULL);
    grid_free(&grid);
}

TEST(literal_values_stay_whole)
{
    struct grid grid = PARSE(GRID_LITERAL, "data.root=/a,b/1..2", "seed=1,2");
    expect_values(&grid.axes[0], "/a,b/1..2");
    expect_values(&grid.axes[1], "1,2");
    grid_free(&grid);
}
