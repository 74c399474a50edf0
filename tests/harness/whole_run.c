#include "tests/harness/whole_run.h"

#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "harness/evaluate/evaluator.h"
#include "harness/run/run.h"
#include "harness/run/sequence.h"

status whole_run(struct small_run *run, const char *database, struct backend_spy *spy)
{
    struct store *store;
    if (spy != NULL)
        small_run_watch(run, spy);
    must(store_open(&store, small_run_file(run, database), STORE_WRITE, &error));
    struct sequence sequence = {.run = run->experiment, .store = store, .stop = spy != NULL ? spy->stop : NULL};
    status result = sequence_run(&sequence, &error);
    store_close(store);
    return result;
}

char *whole_run_weights(const struct small_run *run)
{
    char *folder = run_folder(run->experiment), *path = path_format("%s/weights.safetensors", folder);
    free(folder);
    return path;
}

float *whole_run_features(const struct small_run *run)
{
    struct evaluator *evaluator;
    must(evaluator_create(&evaluator, &run->experiment->model, &run->experiment->data, NULL, NULL, &error));
    must(evaluator_task(evaluator, 0, 0, NULL, &error));
    size_t size = evaluator->sets[0].n * model_feature_width(&run->experiment->model) * sizeof(float);
    float *features = malloc(size);
    memcpy(features, evaluator->sets[0].routed.features, size);
    evaluator_destroy(evaluator);
    return features;
}

static struct bytes weights_of(struct small_run *run, const char *const *overrides, const char *database,
                               struct backend_spy *spy)
{
    struct bytes bytes;
    if (spy != NULL) {
        small_run_reopen(run, 1, overrides);
        assert_int_equal(whole_run(run, database, spy), ERROR_STOPPED);
    }
    small_run_reopen(run, 1, overrides);
    must(whole_run(run, database, NULL));
    char *path = whole_run_weights(run);
    must(file_read(path, FILE_LIMIT, &bytes, &error));
    free(path);
    return bytes;
}

void expect_stop_unseen(struct small_run *run, const char *const *overrides, size_t update)
{
    struct stop stop = {0};
    struct backend_spy spy = {.stop = &stop, .stop_at_update = update};
    struct bytes expected = weights_of(run, overrides, "whole.db", NULL),
                 found = weights_of(run, overrides, "stopped.db", &spy);
    assert_int_equal(found.size, expected.size);
    assert_memory_equal(found.data, expected.data, found.size);
    bytes_free(&expected);
    bytes_free(&found);
}
