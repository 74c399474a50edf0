/* Grids of sweeps: short names, lists, ranges, the order of combinations, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/settings.h"
#include "harness/sweep/grid.h"
#include "tests/test.h"

static struct error error;

/* The grid of words that end with NULL. */
static status parse(struct grid *grid, enum grid_values values, const char *const *words)
{
    size_t count = 0;
    while (words[count] != NULL)
        count++;
    return grid_parse(grid, words, count, values, settings_sections, &error);
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
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grid grid;
        if (parse(&grid, GRID_EXPAND, (const char *const[]){cases[i].word, NULL}) != OK)
            fail_msg("%s: %s", cases[i].word, error.message);
        assert_string_equal(grid.axes[0].key, cases[i].key);
        expect_values(&grid.axes[0], cases[i].values);
        grid_free(&grid);
    }
}

TEST(short_names_are_whole_keys)
{
    static const char *const cases[][2] = {
        {"policy", "merge.policy"},    {"every", "merge.every"},     {"seed", "run.seeds"},
        {"seeds", "run.seeds"},        {"method", "method.name"},    {"experts", "adapter.experts"},
        {"selector", "selector.kind"}, {"weights", "model.weights"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char word[64];
        struct grid grid;
        snprintf(word, sizeof word, "%s=1", cases[i][0]);
        assert_int_equal(parse(&grid, GRID_EXPAND, (const char *const[]){word, NULL}), OK);
        assert_string_equal(grid.axes[0].name, cases[i][0]);
        assert_string_equal(grid.axes[0].key, cases[i][1]);
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
    struct grid grid;
    assert_int_equal(parse(&grid, GRID_EXPAND,
                           (const char *const[]){"policy=none,most_used", "seed=1..3", "every=50,100,200", NULL}),
                     OK);
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
    struct grid grid;
    assert_int_equal(parse(&grid, GRID_EXPAND, (const char *const[]){"every=1,2", "seed=1..3", NULL}), OK);
    assert_int_equal(grid_add_rows(&grid, &rows, &error), OK);
    assert_int_equal(grid.combinations, 4);
    assert_string_equal(grid.axes[0].key, "run.row");
    assert_string_equal(grid_value(&grid, 0, 1), "LwF");
    assert_string_equal(grid_value(&grid, 0, 2), "1..3");
    assert_string_equal(grid_value(&grid, 1, 3), "2");
    grid_free(&grid);
    assert_int_equal(parse(&grid, GRID_LITERAL, (const char *const[]){"row=LwF", NULL}), OK);
    assert_int_equal(grid_add_rows(&grid, &rows, &error), OK);
    assert_int_equal(grid.combinations, 1);
    assert_int_equal(grid.count, 1);
    grid_free(&grid);
}

TEST(nothing_is_one_combination)
{
    struct grid grid;
    assert_int_equal(parse(&grid, GRID_EXPAND, (const char *const[]){NULL}), OK);
    assert_int_equal(grid.combinations, 1);
    grid_overrides(&grid, 0, NULL);
    grid_free(&grid);
}

TEST(literal_values_stay_whole)
{
    struct grid grid;
    assert_int_equal(parse(&grid, GRID_LITERAL, (const char *const[]){"data.root=/a,b/1..2", "seed=1,2", NULL}), OK);
    expect_values(&grid.axes[0], "/a,b/1..2");
    expect_values(&grid.axes[1], "1,2");
    grid_free(&grid);
}

TEST(mistakes_are_told)
{
    static const struct {
        const char *first, *second, *words[3];
    } cases[] = {
        {"polcy=none", NULL, {"unknown key \"polcy\"", "\"merge.policy\""}},
        {"=none", NULL, {"expected KEY=VALUE", "\"=none\""}},
        {"policy", NULL, {"expected KEY=VALUE", "\"policy\""}},
        {"policy=", NULL, {"policy", "an empty one"}},
        {"every=50,,100", NULL, {"every", "an empty one"}},
        {"every=50,", NULL, {"every", "an empty one"}},
        {"seed=5..1", NULL, {"seed", "low to high", "5..1"}},
        {"seed=1..3,2", NULL, {"seed", "2 is repeated"}},
        {"seed=0..99999999", NULL, {"seed", "at most 10000"}},
        {"seed=-9223372036854775808..9223372036854775807", NULL, {"seed", "at most 10000"}},
        {"seed=1", "run.seeds=2", {"run.seeds is repeated"}},
        {"iterations=10", NULL, {"training.iterations", "selector.iterations"}},
        {"every=1..9999", "warmup=1..9999", {"at most 10000 combinations"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grid grid;
        assert_int_equal(parse(&grid, GRID_EXPAND, (const char *const[]){cases[i].first, cases[i].second, NULL}),
                         ERROR_ARGUMENT);
        for (size_t k = 0; k < 3 && cases[i].words[k] != NULL; k++)
            if (strstr(error.message, cases[i].words[k]) == NULL)
                fail_msg("%s: expected \"%s\" in: %s", cases[i].first, cases[i].words[k], error.message);
    }
}
