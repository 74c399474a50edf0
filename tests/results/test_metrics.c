/* The views of metrics against the loops of reference.h, and those against numbers by hand; replay_selector has those of the
 * fixtures. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/query.h"
#include "results/store.h"
#include "tests/results/matrix.h"
#include "tests/results/sample.h"

#define TOLERANCE 1e-9

static void assert_near(double found, double expected, const char *what, size_t task)
{
    if (!(fabs(found - expected) <= TOLERANCE))
        fail_msg("%s of task %zu: found %.12g, expected %.12g", what, task, found, expected);
}

enum { RUN = -1, HAND_TASKS = 3 };

static const double hand[] = {80, 10, 20, 90, 60, 30, 70, 65, 50}, hand_zero_shot[] = {40, 50, 60};
static const int64_t equal_images[] = {10, 10, 10}, domain_images[] = {10, 30, 60};

/* In domain-incremental learning a mean is over the images of the domains so far, and Transfer over those to come. */
static const struct hand_case {
    const char *metric;
    int64_t task; /* RUN: the mean */
    double expected;
    const int64_t *images;
    bool later;
} hand_cases[] = {
    {"forgetting", 0, 20, NULL, false},
    {"forgetting", 1, 0, NULL, false},
    {"forgetting", 2, NAN, NULL, false},
    {"forgetting", RUN, 10, NULL, false},
    {"backward_transfer", RUN, (-10 + 5) / 2.0, NULL, false},
    {"forward_transfer", 0, NAN, NULL, false},
    {"forward_transfer", 1, 10 - 50, NULL, false},
    {"forward_transfer", 2, 30 - 60, NULL, false},
    {"forward_transfer", RUN, -35, NULL, false},
    {"forward_transfer", RUN, NAN, equal_images, false},
    {"forward_transfer", RUN, -35, domain_images, true},
    {"gain", RUN, (30 + 15 - 10) / 3.0, NULL, false},
    {"zero_shot", RUN, (400 + 1500 + 3600) / 100.0, domain_images, true},
    {"last", RUN, (700 + 1950 + 3000) / 100.0, domain_images, true},
    {"average", RUN, (80 + 67.5 + 56.5) / 3, domain_images, true},
    {"average", 1, (10 + 60 + 65) / 3.0, domain_images, true},
    {"average", 1, (60 + 65) / 2.0, equal_images, false},
    {"transfer", RUN, (10 + 25) / 2.0, domain_images, true},
    {"transfer", RUN, NAN, domain_images, false},
};

static void expect_metric(const struct accuracy_matrix *matrix, const char *name, int64_t task, double expected)
{
    const struct metric *metric = metric_find(name);
    double found = task == RUN ? metric_mean(metric, matrix) : metric_of_task(metric, matrix, (size_t)task);
    if (isnan(expected))
        assert_true(isnan(found));
    else
        assert_near(found, expected, name, (size_t)task);
}

TEST(metrics_by_hand)
{
    for (size_t i = 0; i < sizeof hand_cases / sizeof *hand_cases; i++) {
        const struct hand_case *c = &hand_cases[i];
        struct accuracy_matrix matrix = {
            .tasks = HAND_TASKS, .accuracy = hand, .zero_shot = hand_zero_shot, .images = c->images, .later = c->later};
        expect_metric(&matrix, c->metric, c->task, c->expected);
    }
    assert_null(metric_find("bogus"));
}

TEST(missing_accuracies_make_metrics_missing)
{
    const double cells[] = {80, NAN, 90, 60}, one[] = {70};
    struct accuracy_matrix matrix = {.tasks = 2, .accuracy = cells}, single = {.tasks = 1, .accuracy = one};
    expect_metric(&matrix, "transfer", RUN, NAN);
    expect_metric(&matrix, "average", RUN, NAN);
    expect_metric(&matrix, "gain", RUN, NAN);
    expect_metric(&matrix, "last", RUN, 75);
    expect_metric(&single, "transfer", RUN, NAN);
    expect_metric(&single, "last", RUN, 70);
}

static size_t column_of(const struct table *table, const char *name)
{
    size_t column = 0;
    while (column < table->columns && strcmp(table->column[column].title, name) != 0)
        column++;
    assert_true(column < table->columns);
    return column;
}

/* The parts of results/metrics.sql and reference.h are two writings of one definition. */
TEST(views_agree_with_the_reference)
{
    char *path = sample_path("results.sqlite");
    struct store *store;
    assert_ok(store_open(&store, path, STORE_WRITE, &error));
    for (int64_t seed = 0; seed < 5; seed++) {
        int64_t run = sample_finished_run(store, seed);
        struct run_matrix read;
        struct table means = {0}, tasks = {0};
        assert_ok(run_matrix_read(store, run, &read, &error));
        assert_ok(query_named(store, "metrics", &(struct query_filter){.run = run}, &means, &error));
        assert_ok(query_named(store, "tasks", &(struct query_filter){.run = run}, &tasks, &error));
        assert_int_equal(table_rows(&means), 1);
        assert_int_equal(table_rows(&tasks), SAMPLE_TASKS);
        size_t count;
        const struct metric *metrics = metric_list(&count);
        for (size_t i = 0; i < count; i++) {
            size_t of_run = column_of(&means, metrics[i].name), of_task = column_of(&tasks, metrics[i].name);
            assert_near(means.cell[of_run].real, metric_mean(&metrics[i], &read.matrix), metrics[i].name, 0);
            for (size_t task = 0; task < SAMPLE_TASKS; task++) {
                const struct table_cell *cell = table_cell_at(&tasks, task, of_task);
                double expected = metric_of_task(&metrics[i], &read.matrix, task);
                assert_int_equal(cell->kind == CELL_EMPTY, isnan(expected));
                if (!isnan(expected))
                    assert_near(cell->real, expected, metrics[i].name, task);
            }
        }
        table_free(&means);
        table_free(&tasks);
        run_matrix_free(&read);
    }
    store_close(store);
    sample_remove(path);
}
