/* Grids of sweeps: short names, lists, ranges, the order of combinations; harness/commands/program.txt has what is refused. How their
 * runs share a machine. */
#include <string.h>

#include "harness/run/settings.h"
#include "harness/sweep/grid.h"
#include "harness/sweep/sweep.h"
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

/* Items with "|" between them. */
static void expect_items(const struct strings *items, const char *joined)
{
    struct text found = {0};
    for (size_t i = 0; i < items->count; i++)
        text_add(&found, "%s%s", i > 0 ? "|" : "", items->items[i]);
    assert_string_equal(found.data, joined);
    text_free(&found);
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
        expect_items(&grid.axes[0].values, cases[i].values);
        grid_free(&grid);
    }
}

/* The words of a combination. */
static void expect_words(const struct grid *grid, size_t combination, const char *joined)
{
    struct strings overrides = {0};
    grid_overrides(grid, combination, &overrides);
    expect_items(&overrides, joined);
    strings_free(&overrides);
}

/* Every combination once, the last axis fastest; seeds make no combinations wherever they stand. */
TEST(combinations)
{
    struct grid grid = PARSE(GRID_EXPAND, "policy=none,most_used", "seed=1..3", "every=50,100,200");
    assert_int_equal(grid.combinations, 6);
    assert_null(grid_value(&grid, 1, 0));
    assert_string_equal(grid_value(&grid, 0, 2), "none");
    assert_string_equal(grid_value(&grid, 2, 2), "200");
    expect_words(&grid, 0, "merge.policy=none|run.seeds=1,2,3|merge.every=50");
    expect_words(&grid, 1, "merge.policy=none|run.seeds=1,2,3|merge.every=100");
    expect_words(&grid, 2, "merge.policy=none|run.seeds=1,2,3|merge.every=200");
    expect_words(&grid, 3, "merge.policy=most_used|run.seeds=1,2,3|merge.every=50");
    expect_words(&grid, 5, "merge.policy=most_used|run.seeds=1,2,3|merge.every=200");
    grid_free(&grid);
    assert_ok(grid_parse(&grid, NULL, 0, GRID_EXPAND, settings_sections, &error));
    assert_int_equal(grid.combinations, 1); /* of nothing */
    grid_overrides(&grid, 0, NULL);
    grid_free(&grid);
}

/* The rows of a suite are the first axis, unless one of the grid chooses among them; literal values stay whole. */
TEST(rows_vary_slowest)
{
    char lwf[] = "LwF", range[] = "1..3", key[] = "run.row", *names[] = {lwf, range};
    const struct suite_rows rows = {.names = {2, names}, .key = key};
    struct grid grid = PARSE(GRID_EXPAND, "every=1,2", "seed=1..3");
    assert_ok(grid_add_rows(&grid, &rows, &error));
    assert_int_equal(grid.combinations, 4);
    expect_words(&grid, 1, "run.row=LwF|merge.every=2|run.seeds=1,2,3");
    expect_words(&grid, 2, "run.row=1..3|merge.every=1|run.seeds=1,2,3");
    grid_free(&grid);
    grid = PARSE(GRID_LITERAL, "row=LwF", "data.root=/a,b/1..2", "seed=1,2");
    assert_ok(grid_add_rows(&grid, &rows, &error));
    assert_int_equal(grid.combinations, 1);
    expect_words(&grid, 0, "run.row=LwF|data.root=/a,b/1..2|run.seeds=1,2");
    grid_free(&grid);
}

/* --- How runs share a machine --- */

#define GB 1e9

TEST(runs_share_a_machine)
{
    static const struct {
        struct machine machine;
        struct placement_request request;
        size_t jobs, first, last; /* threads of the first job and the last */
        size_t last_gpu;
    } cases[] = {
        {{.cores = 8}, {.runs = 40}, 8, 1, 1, 0},
        {{.cores = 8}, {.runs = 3}, 3, 3, 2, 0},
        {{.cores = 8}, {.runs = 1}, 1, 8, 8, 0},
        {{.cores = 1}, {.runs = 4}, 1, 1, 1, 0},
        {{.cores = 8}, {.runs = 0}, 1, 8, 8, 0},
        /* a request is granted */
        {{.cores = 8}, {.runs = 40, .jobs = 2}, 2, 4, 4, 0},
        {{.cores = 2}, {.runs = 40, .jobs = 5}, 5, 1, 1, 0},
        {{.cores = 8}, {.runs = 40, .threads = 3}, 2, 3, 3, 0},
        {{.cores = 2}, {.runs = 40, .threads = 3}, 1, 3, 3, 0},
        /* memory is a limit where it is known */
        {{.cores = 16, .memory = 10 * GB}, {.runs = 40, .memory = 2 * GB}, 4, 4, 4, 0},
        {{.cores = 16, .memory = 10 * GB}, {.runs = 40, .memory = 20 * GB}, 1, 16, 16, 0},
        {{.cores = 16, .memory = 10 * GB}, {.runs = 40, .memory = 20 * GB, .jobs = 3}, 3, 6, 5, 0},
        {{.cores = 16}, {.runs = 40, .memory = 20 * GB}, 16, 1, 1, 0},
        /* one run on each GPU, and more in turn where more are asked for */
        {{.cores = 16, .memory = 100 * GB, .gpus = 2}, {.runs = 40, .memory = 1 * GB}, 2, 8, 8, 1},
        {{.cores = 16, .memory = 100 * GB, .gpus = 2}, {.runs = 40, .memory = 1 * GB, .jobs = 5}, 5, 4, 3, 0},
        {{.cores = 16, .memory = 100 * GB, .gpus = 2}, {.runs = 1}, 1, 16, 16, 0},
        {{.cores = 16, .memory = 100 * GB}, {.runs = 40, .memory = 1 * GB, .jobs = 5}, 5, 4, 3, 0},
        /* a run takes two next to each other; the fifth stays free */
        {{.cores = 16, .memory = 100 * GB, .gpus = 5}, {.runs = 40, .memory = 1 * GB, .gpus = 2}, 2, 8, 8, 2},
        /* GPUs are limited by their own memory, where one that holds no run is tried all the same */
        {{.cores = 16, .memory = 24 * GB, .gpus = 4}, {.runs = 40, .memory = 23 * GB}, 4, 4, 4, 3},
        {{.cores = 16, .memory = 24 * GB, .gpus = 4}, {.runs = 40, .memory = 25 * GB}, 1, 16, 16, 0},
        /* more than there are: the run itself refuses */
        {{.cores = 16, .memory = 100 * GB, .gpus = 5}, {.runs = 40, .memory = 1 * GB, .gpus = 8}, 1, 16, 16, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct placement placement = placement_choose(&cases[i].machine, &cases[i].request);
        assert_int_equal(placement.jobs, cases[i].jobs);
        assert_int_equal(placement_threads(&placement, 0), cases[i].first);
        assert_int_equal(placement_threads(&placement, cases[i].jobs - 1), cases[i].last);
        assert_int_equal(placement_gpu(&placement, 0), 0);
        assert_int_equal(placement_gpu(&placement, cases[i].jobs - 1), cases[i].last_gpu);
        assert_true(placement_speed(&placement) == (cases[i].machine.gpus > 0 ? 1 : (double)cases[i].first));
    }
}

TEST(this_machine_has_cores_and_memory)
{
    struct machine machine = machine_look();
    assert_true(machine.cores >= 1);
    assert_true(machine.memory > 1e6);
}
