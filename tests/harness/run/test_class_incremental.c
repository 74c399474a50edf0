/* Class-incremental runs: which cells they have, what Avg and Last are, and that every method, a stop and several GPUs
 * are the same to them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "harness/methods/methods.h"
#include "harness/run/run.h"
#include "harness/run/sequence.h"
#include "results/query.h"
#include "results/verify.h"
#include "tests/harness/small_run.h"

enum { TASKS = 3, MOST = 24 };

/* Six classes: two, and twice two more. */
static const char *const scenario[] = {"data.order=third",
                                       "tasks.third.classes=6",
                                       "data.split_by=order",
                                       "data.class_order=5 0 3 4 1 2",
                                       "data.first=2",
                                       "data.parts=2",
                                       "evaluation.label_space=seen",
                                       "training.epochs=1",
                                       "training.iterations=1000",
                                       "training.reference_iterations=yes",
                                       "run.log_every=1"};
enum { SCENARIO = sizeof scenario / sizeof *scenario };

#define ONE_ROUTER "adapter.routers=one", "selector.kind=none", "adapter.freeze_top_k=0"

static void reopen(struct small_run *run, const char *const *overrides)
{
    const char *all[MOST];
    size_t count = 0;
    for (; count < SCENARIO; count++)
        all[count] = scenario[count];
    for (size_t i = 0; overrides[i] != NULL; i++)
        all[count++] = overrides[i];
    all[count] = NULL;
    small_run_reopen(run, 1, all);
}

static status run_once(struct small_run *run, const char *const *overrides, const char *database,
                       struct backend_spy *spy)
{
    struct store *store;
    reopen(run, overrides);
    if (spy != NULL)
        small_run_watch(run, spy);
    must(store_open(&store, small_run_file(run, database), STORE_WRITE, &error));
    struct sequence sequence = {.run = run->experiment, .store = store, .stop = spy != NULL ? spy->stop : NULL};
    status result = sequence_run(&sequence, &error);
    store_close(store);
    return result;
}

static void remove_database(const struct small_run *run, const char *database)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", database, ends[i]);
        unlink(small_run_file(run, name));
    }
}

/* The first cell of an answer, as text. */
static char *answer(const struct small_run *run, const char *database, const char *sql)
{
    struct store *store;
    struct table table = {0};
    must(store_open(&store, small_run_file(run, database), STORE_READ, &error));
    must(query_sql(store, sql, &table, &error));
    assert_true(table_rows(&table) > 0 && table.cell[0].kind == CELL_TEXT);
    char *text = strdup(table.cell[0].text);
    table_free(&table);
    store_close(store);
    return text;
}

static void expect(const struct small_run *run, const char *database, const char *sql, const char *expected)
{
    char *found = answer(run, database, sql);
    assert_string_equal(found, expected);
    free(found);
}

static const char *cells_of(const char *name)
{
    const struct method *method = NULL;
    must(method_find(&method, name, &error));
    if (method->joint)
        return "last";
    return method->alone ? "diagonal" : strcmp(name, "zero_shot") == 0 ? "zero-shot" : "all";
}

static void verify(const struct small_run *run, const char *database)
{
    struct store *store;
    struct verification verification = {.cells = cells_of};
    must(store_open(&store, small_run_file(run, database), STORE_READ, &error));
    must(verify_database(store, &verification, &error));
    if (table_rows(&verification.faults) > 0)
        fail_msg("%s %s: expected %s, found %s", verification.faults.cell[1].text, verification.faults.cell[2].text,
                 verification.faults.cell[3].text, verification.faults.cell[4].text);
    verification_free(&verification);
    store_close(store);
}

#define CELLS "SELECT group_concat(after_task || ':' || task, ' ') FROM (SELECT * FROM evaluations ORDER BY 3, 2)"

/* A row has the tasks so far; Avg and Last are over images, so that the first task, of half the classes, counts double. */
TEST(accuracies_are_over_all_classes_seen)
{
    struct small_run run;
    static const char *const overrides[] = {ONE_ROUTER, "data.first=4", "data.parts=2", "data.class_order=5 0 3 4 1 2",
                                            NULL};
    small_run_open(&run, 1, NULL);
    must(run_once(&run, overrides, "a.db", NULL));
    expect(&run, "a.db", CELLS, "-1:0 -1:1 -1:2 0:0 1:0 1:1 2:0 2:1 2:2");
    expect(&run, "a.db", "SELECT group_concat(images, ' ') FROM (SELECT images FROM evaluations WHERE after_task = 2)",
           "12 3 3");
    expect(&run, "a.db",
           "WITH rows AS (SELECT after_task, 100.0 * sum(correct) / sum(images) AS accuracy FROM evaluations "
           "GROUP BY after_task) "
           "SELECT iif(abs(metrics.average - (SELECT avg(accuracy) FROM rows WHERE after_task >= 0)) < 1e-9 "
           "AND abs(metrics.last - (SELECT accuracy FROM rows WHERE after_task = 2)) < 1e-9 "
           "AND abs(metrics.zero_shot - (SELECT accuracy FROM rows WHERE after_task = -1)) < 1e-9 "
           "AND transfer IS NULL, 'so', average || ' ' || last) FROM metrics",
           "so");
    expect(&run, "a.db", "SELECT setting || ' ' || selector || ' ' || selection FROM runs",
           "class_incremental none none");
    expect(&run, "a.db", "SELECT count(*) || '' FROM router_choices", "0");
    /* 4 classes of 6 images and 1 of 6 in batches of 8: an epoch and one iteration more */
    expect(&run, "a.db", "SELECT group_concat(last, ' ') FROM (SELECT max(iteration) AS last FROM steps GROUP BY task)",
           "4 2 2");
    expect(&run, "a.db", "SELECT group_concat(length(labels) || ' ') FROM test_labels",
           "24 ,6 ,6 "); /* two bytes each */
    expect(&run, "a.db", "SELECT count(*) || '' FROM task_classes", "6");
    verify(&run, "a.db");
    small_run_close(&run);
}

TEST(every_method_runs)
{
    struct small_run run;
    small_run_open(&run, 1, NULL);
    scratch_write_png(&run.scratch, "pictures/1.png", 9, 9, 0x30);
    scratch_write_png(&run.scratch, "pictures/2.png", 9, 9, 0x90);
    scratch_write_text(&run.scratch, "texts.txt", "a red square\ngreen\nblue and yellow\n");
    char *pictures = path_format("method.reference_images=%s/pictures", run.scratch.path),
         *texts = path_format("method.reference_texts=%s/texts.txt", run.scratch.path);
    for (size_t i = 0; method_at(i) != NULL; i++) {
        char name[64], sql[200];
        const struct method *method = method_at(i);
        bool exemplars = options_find(method->options, "exemplars") != NULL,
             hidden = options_find(method->options, "hidden") != NULL,
             references = options_find(method->options, "reference_images") != NULL;
        snprintf(name, sizeof name, "method.name=%s", method->name);
        const char *own = exemplars    ? "method.exemplars=9"
                          : hidden     ? "method.hidden=8"
                          : references ? pictures
                                       : "run.log_every=1";
        const char *overrides[] = {name, "selector.kind=oracle", own, references ? texts : NULL, NULL};
        if (method->alone || method->head != NULL) /* refused: none of its models knows all classes (test_settings) */
            continue;
        must(run_once(&run, overrides, "a.db", NULL));
        snprintf(sql, sizeof sql, "SELECT count(*) || ' ' || (SELECT count(*) FROM metrics) FROM evaluations");
        expect(&run, "a.db", sql, method->joint ? "6 0" : "9 1");
        verify(&run, "a.db");
        remove_database(&run, "a.db");
    }
    free(pictures);
    free(texts);
    small_run_close(&run);
}

#define ROWS                                                                                                           \
    "SELECT (SELECT group_concat(after_task || ' ' || task || ' ' || correct) FROM evaluations) || "                   \
    "(SELECT group_concat(hex(data)) FROM per_image) || coalesce((SELECT group_concat(coalesce(loss, 'none')) FROM "   \
    "steps), '') || "                                                                                                  \
    "coalesce((SELECT digest FROM artifacts WHERE kind = 'adapters'), '') FROM runs"

static void stop_and_go_on(struct small_run *run, const char *const *overrides, struct backend_spy spy,
                           const char *expected)
{
    struct stop stop = {0};
    spy.stop = &stop;
    status result = run_once(run, overrides, "stopped.db", &spy);
    assert_true(stop.signal != 0);
    if (result == ERROR_STOPPED)
        result = run_once(run, overrides, "stopped.db", NULL);
    must(result);
    char *found = answer(run, "stopped.db", ROWS);
    assert_string_equal(found, expected);
    free(found);
    remove_database(run, "stopped.db");
}

/* After any iteration and at any batch of predictions. */
TEST(stops_are_not_seen)
{
    static const char *const cases[][4] = {{ONE_ROUTER, NULL}, {"method.name=zero_shot", NULL}};
    struct small_run run;
    small_run_open(&run, 1, NULL);
    for (size_t c = 0; c < 2; c++) {
        struct backend_spy count = {0};
        must(run_once(&run, cases[c], "whole.db", &count));
        char *expected = answer(&run, "whole.db", ROWS);
        for (size_t update = 1; update <= count.updates; update += test_every())
            stop_and_go_on(&run, cases[c], (struct backend_spy){.stop_at_update = update}, expected);
        for (size_t prediction = 1; prediction <= count.predictions; prediction += test_every())
            stop_and_go_on(&run, cases[c], (struct backend_spy){.stop_at_prediction = prediction}, expected);
        free(expected);
        remove_database(&run, "whole.db");
    }
    small_run_close(&run);
}

TEST(several_gpus)
{
    struct small_run run;
    small_run_open(&run, 1, NULL);
    must(run_once(&run, (const char *const[]){ONE_ROUTER, "run.gpus=2", NULL}, "a.db", NULL));
    expect(&run, "a.db", "SELECT count(*) || ' ' || count(loss) FROM evaluations, steps", "81 81");
    small_run_close(&run);
}
