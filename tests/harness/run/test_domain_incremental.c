/* Tasks whose classes share names: one label space of all names, images with the labels of that space, Avg and Last over the images of
 * the tasks so far, for every method; and runs in an open label space. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "harness/methods/methods.h"
#include "harness/run/sequence.h"
#include "results/query.h"
#include "results/store/store_internal.h"
#include "results/verify.h"
#include "tests/harness/small_run.h"
#include "tests/results/matrix.h"

enum { ALL = 4 /* of the toy drawings */ };

TEST(one_label_space)
{
    struct small_run run;
    small_run_open(&run, 1, (const char *const[]){"data.shared_classes=yes", NULL});
    const struct data *data = &run.experiment->data;
    assert_int_equal(data->class_count, ALL);
    for (size_t k = 0; k < SMALL_RUN_TASKS; k++) {
        const struct dataset *dataset = data->tasks[k].dataset;
        assert_int_equal(dataset_classes(dataset), ALL);
        assert_int_equal(data->tasks[k].first_class, 0);
        assert_int_equal(data_first_class(data, &data->tasks[k]), 0);
        assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), (k + 2) * 6);
        for (size_t c = 0; c < ALL; c++)
            assert_string_equal(dataset_class_name(dataset, c), dataset_class_name(data->tasks[2].dataset, c));
    }
    small_run_close(&run);
}

/* A name of another task is the same class wherever it stands: labels follow names, not positions. */
TEST(labels_follow_names)
{
    struct dataset *dataset;
    const char *const classes[] = {"c", "a", "b"};
    const int32_t labels[] = {2, 0};
    must(dataset_open(&dataset, "toy", ".", NULL, NULL, &error));
    struct dataset *part;
    must(dataset_select(&part, dataset, (const size_t[]){0, 1}, 2, &error));
    int before[16];
    assert_in_range(dataset_size(part, SPLIT_TEST), 2, 16);
    for (size_t i = 0; i < dataset_size(part, SPLIT_TEST); i++)
        before[i] = dataset_label(part, SPLIT_TEST, i);
    dataset_set_classes(part, classes, 3, labels);
    assert_int_equal(dataset_classes(part), 3);
    for (size_t i = 0; i < dataset_size(part, SPLIT_TEST); i++)
        assert_int_equal(dataset_label(part, SPLIT_TEST, i), labels[before[i]]);
    dataset_close(part);
    dataset_close(dataset);
}

static const char *cells_of(const char *name)
{
    const struct method *method = NULL;
    must(method_find(&method, name, &error));
    return method->joint ? "last" : method->alone ? "diagonal" : strcmp(name, "zero_shot") == 0 ? "zero-shot" : "all";
}

enum { OVERRIDES = 10 };

static status run_once(struct small_run *run, const char *const *overrides, struct store *store,
                       struct backend_spy *spy)
{
    const char *all[OVERRIDES] = {"adapter.routers=one", "selector.kind=none", "adapter.freeze_top_k=0"};
    for (size_t i = 0, count = 3; overrides[i] != NULL; i++)
        all[count++] = overrides[i];
    small_run_reopen(run, 1, all);
    if (spy != NULL)
        small_run_watch(run, spy);
    return sequence_run(
        &(struct sequence){.run = run->experiment, .store = store, .stop = spy != NULL ? spy->stop : NULL}, &error);
}

static void verify(struct store *store)
{
    struct verification verification = {.cells = cells_of};
    must(verify_database(store, &verification, &error));
    if (table_rows(&verification.faults) > 0)
        fail_msg("%s %s: expected %s, found %s", verification.faults.cell[1].text, verification.faults.cell[2].text,
                 verification.faults.cell[3].text, verification.faults.cell[4].text);
    verification_free(&verification);
}

/* The views' metrics of a run are those of the functions. */
static void expect_metrics(struct store *store, int64_t run, const int64_t *images)
{
    static const char *const names[] = {"transfer", "average", "last", "forgetting", "gain"};
    struct run_matrix read;
    must(run_matrix_read(store, run, &read, &error));
    read.matrix.images = images;
    read.matrix.later = images != NULL;
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        char sql[200];
        struct table table = {0};
        snprintf(sql, sizeof sql, "SELECT printf('%%.6f', %s) FROM metrics WHERE run = %lld", names[m], (long long)run);
        must(query_sql(store, sql, &table, &error));
        assert_int_equal(table_rows(&table), 1);
        assert_true(fabs(strtod(table.cell[0].text, NULL) - metric_mean(metric_find(names[m]), &read.matrix)) < 1e-5);
        table_free(&table);
    }
    run_matrix_free(&read);
}

/* images: of the tasks, where means are over them. */
static void methods_run_in(const char *setting, const char *name, const int64_t *images)
{
    struct small_run run;
    struct store *store;
    int64_t runs = 0;
    small_run_open(&run, 1, NULL);
    scratch_write_png(&run.scratch, "pictures/1.png", 9, 9, 0x30);
    scratch_write_text(&run.scratch, "texts.txt", "a red square\ngreen\n");
    char *pictures = path_format("method.reference_images=%s/pictures", run.scratch.path),
         *texts = path_format("method.reference_texts=%s/texts.txt", run.scratch.path);
    must(store_open(&store, small_run_file(&run, "a.db"), STORE_WRITE, &error));
    for (size_t i = 0; method_at(i) != NULL; i++) {
        const struct method *method = method_at(i);
        char named[64];
        snprintf(named, sizeof named, "method.name=%s", method->name);
        bool references = options_find(method->options, "reference_images") != NULL;
        const char *own = options_find(method->options, "exemplars") != NULL ? "method.exemplars=9"
                          : options_find(method->options, "hidden") != NULL  ? "method.hidden=8"
                          : strcmp(method->name, "diki") == 0                ? "selector.kind=task_gaussian"
                          : references                                       ? pictures
                                                                             : "run.log_every=1";
        bool learns_once = strcmp(setting, "data.shared_classes=yes") == 0 && strcmp(method->name, "lada") == 0;
        if (method->alone || method->head != NULL || learns_once)
            continue;
        must(run_once(&run, (const char *const[]){setting, named, own, references ? texts : NULL, NULL}, store, NULL));
        runs++;
        if (!method->joint)
            expect_metrics(store, runs, images);
    }
    struct table table = {0};
    must(query_sql(store, "SELECT group_concat(DISTINCT setting) FROM runs", &table, &error));
    assert_string_equal(table.cell[0].text, name);
    table_free(&table);
    verify(store);
    store_close(store);
    free(pictures);
    free(texts);
    small_run_close(&run);
}

#define ROWS                                                                                                           \
    "SELECT (SELECT group_concat(after_task || ' ' || task || ' ' || correct) FROM evaluations) || "                   \
    "(SELECT group_concat(hex(data)) FROM per_image) || (SELECT group_concat(loss) FROM steps)"

static char *rows_of(struct store *store)
{
    struct table table = {0};
    must(query_sql(store, ROWS, &table, &error));
    char *text = strdup(table.cell[0].text);
    table_free(&table);
    return text;
}

/* A run that stops in the middle of training or testing, and goes on. */
TEST(stops_are_not_seen)
{
    static const char *const settings[] = {"data.shared_classes=yes", "evaluation.label_space=open"};
    struct small_run run;
    struct store *store;
    small_run_open(&run, 1, NULL);
    for (size_t k = 0; k < 2; k++) {
        const char *const overrides[] = {settings[k], NULL};
        struct backend_spy count = {0};
        must(store_open(&store, small_run_file(&run, "whole.db"), STORE_WRITE, &error));
        must(run_once(&run, overrides, store, &count));
        char *expected = rows_of(store);
        store_close(store);
        unlink(small_run_file(&run, "whole.db"));
        for (size_t half = 0; half < 2; half++) {
            struct stop stop = {0};
            struct backend_spy spy = {.stop = &stop};
            *(half == 0 ? &spy.stop_at_update : &spy.stop_at_prediction) =
                (half == 0 ? count.updates : count.predictions) / 2;
            must(store_open(&store, small_run_file(&run, "stopped.db"), STORE_WRITE, &error));
            assert_int_equal(run_once(&run, overrides, store, &spy), ERROR_STOPPED);
            must(run_once(&run, overrides, store, NULL));
            char *found = rows_of(store);
            assert_string_equal(found, expected);
            free(found);
            store_close(store);
            unlink(small_run_file(&run, "stopped.db"));
        }
        free(expected);
    }
    small_run_close(&run);
}

TEST(methods_run_with_shared_classes)
{
    methods_run_in("data.shared_classes=yes", "domain_incremental", (const int64_t[]){2 * 3, 3 * 3, 4 * 3});
}

TEST(methods_run_in_an_open_label_space)
{
    methods_run_in("evaluation.label_space=open", "open_domain", NULL);
}

/* All tasks as one have each class once, with the images of all tasks. */
TEST(joint_training_has_a_class_once)
{
    struct small_run run;
    small_run_open(&run, 1, (const char *const[]){"data.shared_classes=yes", "method.name=joint", NULL});
    const struct data *data = &run.experiment->data;
    assert_int_equal(dataset_classes(data->joint.dataset), ALL);
    assert_int_equal(dataset_size(data->joint.dataset, SPLIT_TRAIN), (2 + 3 + 4) * 6);
    size_t of_class[ALL] = {0};
    for (size_t i = 0; i < (2 + 3 + 4) * 6; i++)
        of_class[dataset_label(data->joint.dataset, SPLIT_TRAIN, i)]++;
    assert_int_equal(of_class[0], 3 * 6);
    assert_int_equal(of_class[ALL - 1], 6);
    small_run_close(&run);
}

TEST(what_does_not_go_with_it)
{
    struct small_run run;
    small_run_open(&run, 1, NULL);
    assert_int_equal(
        small_run_try(&run, 1, (const char *const[]){"data.shared_classes=yes", "evaluation.label_space=seen", NULL}),
        ERROR_ARGUMENT);
    error_tells((const char *const[]){"data.shared_classes", "evaluation.label_space", NULL});
    assert_int_equal(
        small_run_try(&run, 1, (const char *const[]){"method.name=finetune", "evaluation.label_space=open", NULL}),
        ERROR_ARGUMENT);
    error_tells((const char *const[]){"evaluation.label_space: open", NULL});
    small_run_close(&run);
}
