/* Every method in X-TAIL, on a small world: its run fills the rows of the matrix that it has, and a stop anywhere is not seen in
 * the results. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/text.h"
#include "harness/methods/methods.h"
#include "harness/run/sequence.h"
#include "results/query.h"
#include "tests/harness/small_run.h"

/* What zscl asks for besides the tasks. */
static void make_references(const struct small_run *run)
{
    for (unsigned i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "references/%u.png", i);
        scratch_write_png(&run->scratch, name, 8, 8, 0x203040 * i);
    }
    scratch_write_text(&run->scratch, "texts.txt", "a red square\na green photo\nblue and yellow\n");
}

static status run_once(struct small_run *run, const struct method *method, const char *database,
                       struct backend_spy *spy)
{
    struct store *store;
    const char *overrides[8] = {"evaluation.label_space=all", "data.shots=4", "run.log_every=1"};
    char *owned[4] = {path_format("method.name=%s", method->name)};
    size_t count = 3, own = 1;
    if (options_find(method->options, "reference_images") != NULL) {
        owned[own++] = path_format("method.reference_images=%s/references", run->scratch.path);
        owned[own++] = path_format("method.reference_texts=%s/texts.txt", run->scratch.path);
    }
    if (options_find(method->options, "hidden") != NULL)
        owned[own++] = path_format("method.hidden=%d", 300);
    for (size_t i = 0; i < own; i++)
        overrides[count++] = owned[i];
    small_run_reopen(run, 1, overrides);
    small_run_watch(run, spy);
    must(store_open(&store, small_run_file(run, database), STORE_WRITE, &error));
    struct sequence sequence = {.run = run->experiment, .store = store, .stop = spy->stop};
    status result = sequence_run(&sequence, &error);
    store_close(store);
    for (size_t i = 0; i < own; i++)
        free(owned[i]);
    return result;
}

/* All predictions and losses of the only run; the caller frees. */
static char *results(const struct small_run *run, const char *database)
{
    struct store *store;
    struct table table = {0};
    must(store_open(&store, small_run_file(run, database), STORE_READ, &error));
    must(query_sql(store,
                   "SELECT (SELECT group_concat(after_task || ',' || task || ':' || correct, ' ') FROM evaluations) || "
                   "coalesce((SELECT group_concat(hex(data)) FROM per_image), '') || "
                   "coalesce((SELECT group_concat(printf('%.9g', loss)) FROM steps), '') FROM runs",
                   &table, &error));
    char *text = strdup(table.cell[0].text);
    table_free(&table);
    store_close(store);
    assert_non_null(text);
    return text;
}

static void forget(const struct small_run *run, const char *database)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", database, ends[i]);
        unlink(small_run_file(run, name));
    }
}

static void goes_on_from(struct small_run *run, const struct method *method, struct backend_spy spy,
                         const char *expected)
{
    struct stop stop = {0};
    struct backend_spy none = {0};
    spy.stop = &stop;
    status result = run_once(run, method, "stopped.db", &spy);
    assert_true(stop.signal != 0);
    if (result == ERROR_STOPPED)
        result = run_once(run, method, "stopped.db", &none);
    must(result);
    char *found = results(run, "stopped.db");
    if (strcmp(found, expected) != 0)
        fail_msg("%s, stopped at update %zu or encoding %zu:\n%s\nexpected\n%s", method->name, spy.stop_at_update,
                 spy.stop_at_encoding, found, expected);
    free(found);
    forget(run, "stopped.db");
}

static size_t cells(const struct method *method, unsigned groups)
{
    if (groups == GROUPS_NONE && method->end_task == NULL)
        return SMALL_RUN_TASKS; /* of the zero-shot row */
    return SMALL_RUN_TASKS + (method->alone || method->joint ? SMALL_RUN_TASKS : SMALL_RUN_TASKS * SMALL_RUN_TASKS);
}

static size_t count_cells(const char *text)
{
    size_t count = 0;
    for (; (text = strchr(text, ':')) != NULL; text++)
        count++;
    return count;
}

TEST(every_method_runs_and_goes_on_after_a_stop)
{
    struct small_run run;
    small_run_open(&run, 1, NULL);
    make_references(&run);
    for (size_t i = 0; method_at(i) != NULL; i++) {
        const struct method *method = method_at(i);
        struct backend_spy count = {0};
        if (method->head != NULL) /* refused: a head of one dataset (test_settings) */
            continue;
        must(run_once(&run, method, "whole.db", &count));
        char *expected = results(&run, "whole.db");
        if (count_cells(expected) != cells(method, run.experiment->model.groups))
            fail_msg("%s: %zu cells, expected %zu", method->name, count_cells(expected),
                     cells(method, run.experiment->model.groups));
        for (size_t at = 2; at < count.updates; at += test_every() * (count.updates / 2 + 1))
            goes_on_from(&run, method, (struct backend_spy){.stop_at_update = at}, expected);
        for (size_t at = 2; at < count.encodings; at += test_every() * (count.encodings / 3 + 1))
            goes_on_from(&run, method, (struct backend_spy){.stop_at_encoding = at}, expected);
        free(expected);
        forget(&run, "whole.db");
    }
    small_run_close(&run);
}
