#include "tests/harness/whole_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "harness/evaluate/evaluator.h"
#include "harness/methods/methods.h"
#include "harness/run/run.h"
#include "harness/run/sequence.h"
#include "results/query.h"
#include "results/verify.h"

struct sequence whole_run_sequence;

status whole_run(struct small_run *run, const char *database, struct backend_spy *spy)
{
    struct store *store;
    const struct stop *stop = spy != NULL ? spy->stop : NULL;
    if (spy != NULL)
        small_run_watch(run, spy);
    must(store_open_stoppable(&store, small_run_file(run, database), STORE_WRITE, stop,
                              &error)); /* as `mtil run` does */
    whole_run_sequence = (struct sequence){.run = run->experiment, .store = store, .stop = stop};
    status result = sequence_run(&whole_run_sequence, &error);
    store_close(store);
    return result;
}

char *whole_run_text(const struct small_run *run, const char *database, const char *sql)
{
    struct store *store;
    struct table table = {0};
    char number[TABLE_NUMBER];
    must(store_open(&store, small_run_file(run, database), STORE_READ, &error));
    must(query_sql(store, sql, &table, &error));
    assert_true(table_rows(&table) > 0);
    char *text = small_run_format("%s", table_cell_text(&table.cell[0], 9, number));
    table_free(&table);
    store_close(store);
    return text;
}

void expect_text(const struct small_run *run, const char *database, const char *sql, const char *expected)
{
    const char *found = whole_run_text(run, database, sql);
    if (strcmp(found, expected) != 0)
        fail_msg("%s: expected %s, found %s", sql, expected, found);
}

void expect_number(const struct small_run *run, const char *database, const char *sql, int64_t expected)
{
    expect_text(run, database, sql, small_run_format("%lld", (long long)expected));
}

void remove_database(const struct small_run *run, const char *database)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", database, ends[i]);
        assert_true(unlink(small_run_file(run, name)) == 0 || i > 0);
    }
}

size_t whole_run_faults(const struct small_run *run, const char *database, const char *(*cells)(const char *method))
{
    struct store *store;
    struct verification verification = {.cells = cells};
    must(store_open(&store, small_run_file(run, database), STORE_READ, &error));
    must(verify_database(store, &verification, &error));
    size_t count = table_rows(&verification.faults);
    if (count > 0)
        print_message("%s %s: expected %s, found %s\n", verification.faults.cell[1].text,
                      verification.faults.cell[2].text, verification.faults.cell[3].text,
                      verification.faults.cell[4].text);
    verification_free(&verification);
    store_close(store);
    return count;
}

const char *whole_run_cells(const char *name)
{
    const struct method *method = NULL;
    must(method_find(&method, name, &error));
    if (method->joint)
        return "last";
    return method->head != NULL             ? "trained"
           : method->alone                  ? "diagonal"
           : strcmp(name, "zero_shot") == 0 ? "zero-shot"
                                            : "all";
}

char *whole_run_file(const struct small_run *run, const char *name)
{
    char *folder = run_folder(run->experiment), *path = small_run_format("%s/%s", folder, name);
    free(folder);
    return path;
}

char *whole_run_weights(const struct small_run *run)
{
    return whole_run_file(run, "weights.safetensors");
}

float *whole_run_features(struct small_run *run)
{
    struct evaluator *evaluator;
    must(evaluator_create(&evaluator, &run->experiment->model, &run->experiment->data, NULL, NULL, &error));
    must(evaluator_task(evaluator, 0, 0, NULL, &error));
    size_t size = evaluator->sets[0].n * model_feature_width(&run->experiment->model) * sizeof(float);
    float *features = memcpy(small_run_keep(malloc(size)), evaluator->sets[0].routed.features, size);
    evaluator_destroy(evaluator);
    return features;
}

char *whole_run_results(const struct small_run *run, const char *database)
{
    return whole_run_text(
        run, database,
        "SELECT (SELECT group_concat(after_task || ',' || task || ':' || correct, ' ') FROM evaluations) || "
        "coalesce((SELECT group_concat(hex(data)) FROM per_image), '') || "
        "coalesce((SELECT group_concat(printf('%.9g', loss)) FROM steps), '') || "
        "coalesce((SELECT group_concat(kind || digest) FROM artifacts), '') FROM runs");
}

void expect_resumed(struct small_run *run, const char *const *overrides, struct backend_spy spy, const char *expected)
{
    struct stop stop = {0};
    spy.stop = &stop;
    small_run_reopen(run, 1, overrides);
    status result = whole_run(run, "stopped.db", &spy);
    assert_true(stop.signal != 0);
    if (result == ERROR_STOPPED) {
        small_run_reopen(run, 1, overrides);
        result = whole_run(run, "stopped.db", NULL);
    }
    must(result);
    const char *found = whole_run_results(run, "stopped.db");
    if (strcmp(found, expected) != 0)
        fail_msg("stopped at update %zu, encoding %zu or prediction %zu:\n%s\nexpected\n%s", spy.stop_at_update,
                 spy.stop_at_encoding, spy.stop_at_prediction, found, expected);
    remove_database(run, "stopped.db");
}

void expect_stop_unseen(struct small_run *run, const char *const *overrides, size_t update)
{
    small_run_reopen(run, 1, overrides);
    must(whole_run(run, "whole.db", NULL));
    expect_resumed(run, overrides, (struct backend_spy){.stop_at_update = update}, whole_run_results(run, "whole.db"));
    remove_database(run, "whole.db");
}
