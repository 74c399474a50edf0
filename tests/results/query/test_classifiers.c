/* The table of classifiers: rows by dataset, against a baseline of the same suite over the seeds that both have. */
#include "tests/results/check.h"

#include <math.h>
#include <stdio.h>

#include "results/query.h"
#include "tests/results/sample.h"

struct fixture {
    char *path;
    struct store *store;
};

struct one_run {
    const char *row, *dataset;
    int64_t seed, correct; /* of 1000 */
    const char *model, *hash, *images;
};

static void add_run(struct store *store, const struct one_run *one)
{
    struct run_description described = sample_description(one->seed);
    const struct setting_row settings[] = {{"head.name", "linear", "text"}, {"run.row", one->row, "text"}};
    struct run_start start;
    char hash[64];
    snprintf(hash, sizeof hash, "%s-%s-%s", one->row, one->dataset, one->hash ? one->hash : "");
    described.suite_hash = hash;
    described.settings = settings;
    described.setting_count = 2;
    described.method = "supervised";
    described.policy = described.selector = described.selection = "none";
    described.order = one->dataset;
    described.model = one->model ? one->model : "scratch";
    described.tasks = 1;
    assert_ok(store_run_start(store, &described, &start, &error));
    assert_ok(sample_add_task(
        store, start.run,
        &(struct sample_task){
            .name = one->dataset, .classes = 2, .test_images = 1000, .test_digest = one->images ? one->images : "0"},
        &error));
    assert_ok(store_add_evaluation(store, start.run, &(struct evaluation_row){.correct = one->correct, .images = 1000},
                                   &error));
    assert_ok(store_run_end(store, start.run, RUN_FINISHED, NULL, &error));
}

/* Dense lacks seed 4. EWA is 2, 3 and 4 points above it; WideNet 3 below, 3 above and as good. */
static int create(void **state)
{
    static struct fixture fixture;
    fixture.path = sample_path("results.sqlite");
    assert_ok(store_open(&fixture.store, fixture.path, STORE_WRITE, &error));
    static const int64_t dense[] = {600, 620, 640}, ewa[] = {620, 650, 680, 990}, wide[] = {570, 650, 640};
    for (int64_t seed = 1; seed <= 4; seed++) {
        if (seed < 4) {
            add_run(fixture.store, &(struct one_run){"Dense", "cifar100", seed, dense[seed - 1], NULL, NULL, NULL});
            add_run(fixture.store, &(struct one_run){"WideNet", "cifar100", seed, wide[seed - 1], NULL, NULL, NULL});
        }
        add_run(fixture.store, &(struct one_run){"EWA", "cifar100", seed, ewa[seed - 1], NULL, NULL, NULL});
    }
    *state = &fixture;
    return 0;
}

static int destroy(void **state)
{
    struct fixture *fixture = *state;
    store_close(fixture->store);
    sample_remove(fixture->path);
    return 0;
}

static struct table ask(void **state, struct query_filter filter)
{
    struct table table = {0};
    assert_ok(query_named(((struct fixture *)*state)->store, "paper-table", &filter, &table, &error));
    return table;
}

static const struct table_cell *cell(const struct table *table, const char *dataset, const char *classifier,
                                     const char *title)
{
    size_t column = 0;
    while (column < table->columns && strcmp(table->column[column].title, title) != 0)
        column++;
    for (size_t row = 0; column < table->columns && row < table_rows(table); row++)
        if (strcmp(table_cell_at(table, row, 1)->text, dataset) == 0 &&
            strcmp(table_cell_at(table, row, 2)->text, classifier) == 0)
            return table_cell_at(table, row, column);
    fail_msg("there is no %s of %s on %s", title, classifier, dataset);
    return NULL;
}

static void expect_real(const struct table_cell *found, double expected)
{
    if (found->kind != CELL_REAL || fabs(found->real - expected) > 1e-6)
        fail_msg("expected %f, found %f (kind %d)", expected, found->real, found->kind);
}

static const double t_2 = 4.302652729911275; /* Student's 0.975 quantile of two degrees of freedom */

static void rows_stand_against_the_dense_one(void **state)
{
    struct table table = ask(state, (struct query_filter){0});
    assert_int_equal(table_rows(&table), 3);
    expect_real(cell(&table, "cifar100", "Dense", "accuracy"), 62);
    expect_real(cell(&table, "cifar100", "Dense", "accuracy ±"), t_2 * 2 / sqrt(3));
    assert_int_equal(cell(&table, "cifar100", "Dense", "difference")->kind, CELL_EMPTY);
    assert_int_equal(cell(&table, "cifar100", "Dense", "direction")->kind, CELL_EMPTY);
    expect_real(cell(&table, "cifar100", "EWA", "accuracy"), (62 + 65 + 68 + 99) / 4.0);
    assert_int_equal(cell(&table, "cifar100", "EWA", "seeds")->integer, 4);
    assert_int_equal(cell(&table, "cifar100", "EWA", "pairs")->integer, 3);
    assert_int_equal(cell(&table, "cifar100", "EWA", "trained_parameters")->integer, 12345);
    expect_real(cell(&table, "cifar100", "EWA", "difference"), 3);
    expect_real(cell(&table, "cifar100", "EWA", "difference ±"), t_2 / sqrt(3));
    assert_string_equal(cell(&table, "cifar100", "EWA", "direction")->text, "above");
    assert_string_equal(cell(&table, "cifar100", "WideNet", "direction")->text, "not established");
    table_free(&table);
}

/* By as many images under every seed: that shows no spread, and so no direction. */
static void equal_differences_establish_nothing(void **state)
{
    struct fixture *fixture = *state;
    for (int64_t seed = 1; seed <= 3; seed++)
        add_run(fixture->store, &(struct one_run){"RMoE", "cifar100", seed, 579 + 20 * seed, NULL, NULL, NULL});
    struct table table = ask(state, (struct query_filter){0});
    expect_real(cell(&table, "cifar100", "RMoE", "difference"), -0.1);
    expect_real(cell(&table, "cifar100", "RMoE", "difference ±"), 0);
    assert_string_equal(cell(&table, "cifar100", "RMoE", "direction")->text, "not established");
    table_free(&table);
}

static void another_row_is_the_baseline(void **state)
{
    struct fixture *fixture = *state;
    struct table table = ask(state, (struct query_filter){.baseline = "EWA"});
    expect_real(cell(&table, "cifar100", "Dense", "difference"), -3);
    assert_string_equal(cell(&table, "cifar100", "Dense", "direction")->text, "below");
    assert_int_equal(cell(&table, "cifar100", "EWA", "difference")->kind, CELL_EMPTY);
    table_free(&table);
    assert_fails(query_named(fixture->store, "paper-table", &(struct query_filter){.baseline = "Ewa"}, &table, &error),
                 ERROR_ARGUMENT, "Ewa");
    table_free(&table);
}

/* Other datasets, or other images, have a baseline of their own, or none; one seed has no interval. */
static void datasets_are_apart(void **state)
{
    struct fixture *fixture = *state;
    add_run(fixture->store, &(struct one_run){"EWA", "food", 1, 900, NULL, NULL, NULL});
    add_run(fixture->store, &(struct one_run){"Dense", "dtd", 1, 500, NULL, NULL, NULL});
    add_run(fixture->store, &(struct one_run){"EWA", "dtd", 1, 400, NULL, NULL, NULL});
    add_run(fixture->store, &(struct one_run){"WideNet", "dtd", 1, 400, NULL, NULL, "other images"});
    struct table table = ask(state, (struct query_filter){0});
    expect_real(cell(&table, "cifar100", "EWA", "difference"), 3);
    assert_int_equal(cell(&table, "dtd", "WideNet", "difference")->kind, CELL_EMPTY);
    assert_int_equal(cell(&table, "food", "EWA", "difference")->kind, CELL_EMPTY);
    expect_real(cell(&table, "dtd", "EWA", "difference"), -10);
    assert_int_equal(cell(&table, "dtd", "EWA", "difference ±")->kind, CELL_EMPTY);
    assert_int_equal(cell(&table, "dtd", "EWA", "direction")->kind, CELL_EMPTY);
    table_free(&table);
}

/* Which of two is meant is not known; they are told apart. */
static void two_baselines_are_none(void **state)
{
    struct fixture *fixture = *state;
    add_run(fixture->store, &(struct one_run){"Dense", "cifar100", 1, 500, NULL, "longer", NULL});
    struct table table = ask(state, (struct query_filter){0});
    assert_int_equal(table_rows(&table), 4);
    assert_int_equal(cell(&table, "cifar100", "EWA", "difference")->kind, CELL_EMPTY);
    assert_int_equal(cell(&table, "cifar100", "Dense, Dense-ci", "accuracy")->kind, CELL_REAL);
    table_free(&table);
}

/* Fine-tuned ones beside fine-tuned ones. */
static void published_rows_are_of_the_same_kind(void **state)
{
    struct fixture *fixture = *state;
    struct table table = ask(state, (struct query_filter){.published = true});
    assert_int_equal(table_rows(&table), 3 + 2 * 9 + 2); /* EWA's Tables 2 and 5 */
    expect_real(cell(&table, "cifar100", "EWA ViT-S, published (EWA, arXiv 2308.06093)", "difference"), 1.72);
    assert_non_null(strstr(table_cell_at(&table, 0, 2)->text, "(other data than in papers)"));
    table_free(&table);
    add_run(fixture->store, &(struct one_run){"Dense", "cifar100", 1, 500, "ViT-B-16.safetensors", "tuned", NULL});
    add_run(fixture->store, &(struct one_run){"fine-tuned", "cifar100", 1, 500, "ViT-B-16.safetensors", "tuned", NULL});
    table = ask(state, (struct query_filter){.published = true});
    expect_real(cell(&table, "cifar100", "Dense ViT-B, published (EWA, arXiv 2308.06093)", "accuracy"), 90.71);
    expect_real(cell(&table, "cifar100", "EWA ViT-B, published (EWA, arXiv 2308.06093)", "accuracy"), 91.42);
    expect_real(cell(&table, "cifar100", "EWA ViT-B, published (EWA, arXiv 2308.06093)", "difference"), 0.71);
    table_free(&table);
    add_run(fixture->store, &(struct one_run){"WideNet-H", "imagenet", 1, 500, NULL, NULL, NULL});
    add_run(fixture->store, &(struct one_run){"WideNet-L", "cifar10", 1, 500, "l.safetensors", NULL, NULL});
    table = ask(state, (struct query_filter){.published = true});
    expect_real(cell(&table, "imagenet", "WideNet-H, published (WideNet, arXiv 2107.11817)", "accuracy"), 80.1);
    expect_real(cell(&table, "imagenet", "ViT-L, published (WideNet, arXiv 2107.11817)", "accuracy"), 77.5);
    expect_real(cell(&table, "cifar10", "WideNet-L, published (WideNet, arXiv 2107.11817)", "accuracy"), 98.8);
    table_free(&table);
}

/* A sequence's table has no classifiers, and theirs no sequences. */
static void sequences_have_a_table_of_their_own(void **state)
{
    struct fixture *fixture = *state;
    struct table table = {0};
    sample_finished_run(fixture->store, 1);
    table = ask(state, (struct query_filter){0});
    assert_int_equal(table_rows(&table), 3); /* Transfer, Average, Last of one method */
    table_free(&table);
    table = ask(state, (struct query_filter){.method = "supervised"});
    expect_real(cell(&table, "cifar100", "EWA", "difference"), 3);
    table_free(&table);
    assert_fails(query_named(fixture->store, "paper-table", &(struct query_filter){.baseline = "EWA"}, &table, &error),
                 ERROR_ARGUMENT, "--method supervised");
    table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_stand_against_the_dense_one, create, destroy),
        cmocka_unit_test_setup_teardown(equal_differences_establish_nothing, create, destroy),
        cmocka_unit_test_setup_teardown(another_row_is_the_baseline, create, destroy),
        cmocka_unit_test_setup_teardown(datasets_are_apart, create, destroy),
        cmocka_unit_test_setup_teardown(two_baselines_are_none, create, destroy),
        cmocka_unit_test_setup_teardown(published_rows_are_of_the_same_kind, create, destroy),
        cmocka_unit_test_setup_teardown(sequences_have_a_table_of_their_own, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
