#include "tests/test.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/query.h"
#include "results/store.h"
#include "tests/results/matrix.h"
#include "tests/results/sample.h"

#define TOLERANCE 1e-9
#define PRINTED_TOLERANCE 0.11 /* printed numbers come from unrounded data */

static void assert_near(double found, double expected, double tolerance, const char *what, size_t task)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("%s of task %zu: found %.12g, expected %.12g", what, task, found, expected);
}

static json_t *load(void)
{
    json_error_t problem;
    json_t *fixture = json_load_file(FIXTURES "/model/base/metrics.json", 0, &problem);
    if (!fixture) {
        print_message("skipped: %s: %s\n", problem.source, problem.text);
        skip();
    }
    return fixture;
}

static double element(const json_t *array, size_t index)
{
    return json_number_value(json_array_get(array, index));
}

/* Room for [tasks + 1, tasks]: the fixture's rows, then its zero-shot row. */
static struct accuracy_matrix read_matrix(const json_t *fixture)
{
    const json_t *rows = json_object_get(fixture, "A"), *zero_shot = json_object_get(fixture, "zero_shot");
    size_t tasks = json_array_size(rows);
    double *cells = malloc((tasks + 1) * tasks * sizeof *cells);
    for (size_t i = 0; i <= tasks; i++)
        for (size_t j = 0; j < tasks; j++)
            cells[i * tasks + j] = element(i < tasks ? json_array_get(rows, i) : zero_shot, j);
    return (struct accuracy_matrix){.tasks = tasks, .accuracy = cells, .zero_shot = cells + tasks * tasks};
}

static void check_metric(const json_t *fixture, const struct accuracy_matrix *matrix, const char *name)
{
    const struct metric *metric = metric_find(name);
    const json_t *expected = json_object_get(fixture, name);
    for (size_t task = 0; task < matrix->tasks; task++) {
        double found = metric_of_task(metric, matrix, task);
        if (json_is_null(json_array_get(expected, task)))
            assert_true(isnan(found));
        else
            assert_near(found, element(expected, task), TOLERANCE, name, task);
    }
    double mean = json_number_value(json_object_get(json_object_get(fixture, "mean"), name));
    assert_near(metric_mean(metric, matrix), mean, TOLERANCE, name, 0);
}

TEST(matrices_of_the_fixture_agree)
{
    json_t *fixture = load(), *matrices = json_object_get(fixture, "matrices");
    assert_true(json_array_size(matrices) >= 3);
    for (size_t i = 0; i < json_array_size(matrices); i++) {
        const json_t *one = json_array_get(matrices, i);
        struct accuracy_matrix matrix = read_matrix(one);
        check_metric(one, &matrix, "transfer");
        check_metric(one, &matrix, "average");
        check_metric(one, &matrix, "last");
        check_metric(one, &matrix, "zero_shot");
        free((double *)matrix.accuracy);
    }
    json_decref(fixture);
}

/* A published column stands in its place of an otherwise empty matrix. */
static void check_column(const json_t *column)
{
    const json_t *values = json_object_get(column, "column"), *printed = json_object_get(column, "printed");
    size_t tasks = json_array_size(values), j = (size_t)json_integer_value(json_object_get(column, "j"));
    double *cells = calloc(tasks * tasks, sizeof *cells);
    for (size_t i = 0; i < tasks; i++)
        cells[i * tasks + j] = element(values, i);
    struct accuracy_matrix matrix = {.tasks = tasks, .accuracy = cells};
    static const char *const names[] = {"transfer", "average", "last"};
    for (size_t i = 0; i < 3; i++) {
        double found = metric_of_task(metric_find(names[i]), &matrix, j);
        if (!json_is_number(json_object_get(column, names[i])))
            continue;
        assert_near(found, json_number_value(json_object_get(column, names[i])), TOLERANCE, names[i], j);
        assert_near(found, json_number_value(json_object_get(printed, names[i])), PRINTED_TOLERANCE, names[i], j);
    }
    free(cells);
}

TEST(published_columns_agree)
{
    json_t *fixture = load(), *columns = json_object_get(json_object_get(fixture, "published"), "columns");
    assert_true(json_array_size(columns) > 0);
    for (size_t i = 0; i < json_array_size(columns); i++)
        check_column(json_array_get(columns, i));
    json_decref(fixture);
}

TEST(forgetting_and_transfer_by_hand)
{
    const double cells[] = {80, 10, 20, 90, 60, 30, 70, 65, 50}, zero_shot[] = {40, 50, 60};
    const int64_t images[] = {10, 10, 10};
    struct accuracy_matrix matrix = {.tasks = 3, .accuracy = cells, .zero_shot = zero_shot};
    const struct metric *forgetting = metric_find("forgetting"), *backward = metric_find("backward_transfer");
    assert_true(metric_of_task(forgetting, &matrix, 0) == 20);
    assert_true(metric_of_task(forgetting, &matrix, 1) == 0);
    assert_true(isnan(metric_of_task(forgetting, &matrix, 2)));
    assert_true(metric_mean(forgetting, &matrix) == 10);
    assert_true(metric_mean(backward, &matrix) == (-10 + 5) / 2.0);
    const struct metric *forward = metric_find("forward_transfer");
    assert_true(isnan(metric_of_task(forward, &matrix, 0)));
    assert_true(metric_of_task(forward, &matrix, 1) == 10 - 50 && metric_of_task(forward, &matrix, 2) == 30 - 60);
    assert_true(metric_mean(forward, &matrix) == -35);
    assert_true(isnan(metric_mean(
        forward, &(struct accuracy_matrix){.tasks = 3, .accuracy = cells, .zero_shot = zero_shot, .images = images})));
    assert_near(metric_mean(metric_find("gain"), &matrix), (30 + 15 - 10) / 3.0, TOLERANCE, "gain", 0);
    assert_null(metric_find("bogus"));
}

/* In domain-incremental learning a mean is over the images of the domains so far, and Transfer over those to come. */
TEST(domains_by_hand)
{
    const double cells[] = {80, 10, 20, 90, 60, 30, 70, 65, 50}, zero_shot[] = {40, 50, 60};
    const int64_t images[] = {10, 30, 60};
    struct accuracy_matrix matrix = {
        .tasks = 3, .accuracy = cells, .zero_shot = zero_shot, .images = images, .later = true};
    assert_true(accuracy_expected(&matrix, 0, 2));
    assert_near(accuracy_mean(&matrix, 1), (900 + 1800) / 40.0, TOLERANCE, "mean", 1);
    assert_near(accuracy_mean(&matrix, -1), (400 + 1500 + 3600) / 100.0, TOLERANCE, "zero-shot", 0);
    assert_near(metric_mean(metric_find("last"), &matrix), (700 + 1950 + 3000) / 100.0, TOLERANCE, "last", 0);
    assert_near(metric_mean(metric_find("average"), &matrix), (80 + 67.5 + 56.5) / 3, TOLERANCE, "average", 0);
    assert_near(metric_mean(metric_find("transfer"), &matrix), (10 + 25) / 2.0, TOLERANCE, "transfer", 0);
    assert_near(metric_of_task(metric_find("average"), &matrix, 1), (10 + 60 + 65) / 3.0, TOLERANCE, "average", 1);
    assert_true(metric_mean(metric_find("forward_transfer"), &matrix) == -35);
    matrix.later = false;
    assert_true(!accuracy_expected(&matrix, 0, 2) && isnan(metric_mean(metric_find("transfer"), &matrix)));
}

TEST(missing_accuracies_make_metrics_missing)
{
    const double cells[] = {80, NAN, 90, 60}, one[] = {70};
    struct accuracy_matrix matrix = {.tasks = 2, .accuracy = cells}, single = {.tasks = 1, .accuracy = one};
    assert_true(isnan(metric_mean(metric_find("transfer"), &matrix)));
    assert_true(isnan(metric_mean(metric_find("average"), &matrix)));
    assert_true(isnan(metric_mean(metric_find("gain"), &matrix)));
    assert_true(metric_mean(metric_find("last"), &matrix) == 75);
    assert_true(isnan(metric_mean(metric_find("transfer"), &single)));
    assert_true(metric_mean(metric_find("last"), &single) == 70);
}

static size_t column_of(const struct table *table, const char *name)
{
    size_t column = 0;
    while (column < table->columns && strcmp(table->column[column].title, name) != 0)
        column++;
    assert_true(column < table->columns);
    return column;
}

/* The files of results/metrics/ and reference.h are two writings of one definition. */
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
            assert_near(means.cell[of_run].real, metric_mean(&metrics[i], &read.matrix), TOLERANCE, metrics[i].name, 0);
            for (size_t task = 0; task < SAMPLE_TASKS; task++) {
                const struct table_cell *cell = table_cell_at(&tasks, task, of_task);
                double expected = metric_of_task(&metrics[i], &read.matrix, task);
                assert_int_equal(cell->kind == CELL_EMPTY, isnan(expected));
                if (!isnan(expected))
                    assert_near(cell->real, expected, TOLERANCE, metrics[i].name, task);
            }
        }
        table_free(&means);
        table_free(&tasks);
        run_matrix_free(&read);
    }
    store_close(store);
    sample_remove(path);
}
