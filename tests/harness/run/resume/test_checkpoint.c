/* Resume files: what they keep, which are refused, and that they are written beside the training. That every method goes on from its
 * own is test_every_method's, every selector test_kinds'; test_replicas stops an optimizer of one moment. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "harness/run/resume/checkpoint.h"
#include "harness/train/serializer.h"
#include "models/files/safetensors.h"
#include "tests/harness/small_run.h"

/* Everything of the text tower's adapters that a stop must not lose, n numbers. */
static float *state_of(const struct small_run *run, size_t *n)
{
    const struct parameters *group = run->experiment->model.adapters->towers[TOWER_TEXT].parameters;
    *n = 3 * group->values_count + group->segments + group->flags_count;
    float *all = small_run_keep(malloc(*n * sizeof *all)), *next = all;
    const void *parts[] = {group->values, group->first_moment, group->second_moment, group->steps, group->flags};
    const size_t counts[] = {group->values_count, group->values_count, group->values_count, group->segments,
                             group->flags_count};
    struct backend *backend = run->experiment->model.backend;
    for (size_t i = 0; i < 5 && counts[i] > 0; i++) {
        must(backend->ops->download(backend, next, parts[i], counts[i] * sizeof *next, &error));
        next += counts[i];
    }
    return all;
}

static void expect_state(const struct small_run *run, const float *expected)
{
    size_t n;
    float *found = state_of(run, &n);
    assert_memory_equal(found, expected, n * sizeof *found);
}

/* From the file "resume". */
static status load(struct small_run *run, struct checkpoint_place *place)
{
    bool found;
    status result = checkpoint_load(run->experiment, NULL, small_run_file(run, "resume"), place, &found, &error);
    assert_true(result != OK || found);
    return result;
}

#define must_not_load(run, ...)                                                                                        \
    must_refuse(load(run, &(struct checkpoint_place){0}), ERROR_FORMAT, "resume", "delete", __VA_ARGS__)

/* Saves, goes on (which changes everything), loads. */
RUN_TEST(adapters_within_a_task, NULL)
{
    struct checkpoint_place place;
    size_t n;
    struct adapters *adapters = run->experiment->model.adapters;
    int32_t use[4 * 2 * 5], then_use[4 * 2 * 5];
    must(small_run_train(run, 0, NULL));
    must(small_run_train(run, 1, NULL));
    small_run_save(run, "resume", 1, 6);
    float *then = state_of(run, &n);
    must(adapters_read_counts_and_frozen(adapters, TOWER_TEXT, then_use, &error));
    must(small_run_train(run, 2, NULL));
    assert_memory_not_equal(then, state_of(run, &n), n * sizeof *then);
    must(load(run, &place));
    assert_true(place.task == 1 && place.iteration == 6 && place.rows == 77);
    expect_state(run, then);
    must(adapters_read_counts_and_frozen(adapters, TOWER_TEXT, use, &error));
    assert_memory_equal(use, then_use, 2 * adapters_counts(adapters, TOWER_TEXT).n * sizeof *use);
}

RUN_TEST(another_run_is_refused, NULL)
{
    small_run_save(run, "resume", 1, 0);
    small_run_reopen(run, 2, NULL);
    must_not_load(run, "expected seed 2, found 1");
    small_run_reopen(run, 1, WORDS("adapter.experts=6"));
    must_not_load(run, "suite_hash");
    small_run_reopen(run, 1, WORDS("run.threads=1")); /* says how, not what */
    must(load(run, &(struct checkpoint_place){0}));
}

RUN_TEST(only_finished_runs_are_removed, NULL)
{
    static const struct {
        size_t task, iteration;
        uint64_t seed;
        bool removed;
    } cases[] = {{2, 3, 1, false}, {3, 0, 2, false}, {3, 0, 1, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        small_run_reopen(run, 1, NULL);
        small_run_save(run, "resume", cases[i].task, cases[i].iteration);
        small_run_reopen(run, cases[i].seed, NULL);
        checkpoint_remove_finished(run->experiment, small_run_file(run, "resume"));
        assert_int_equal(!file_exists(small_run_file(run, "resume")), cases[i].removed);
    }
    checkpoint_remove_finished(run->experiment, small_run_file(run, "none"));
    struct checkpoint_place place = {.task = 9, .iteration = 9, .rows = 9}; /* no file is a fresh start */
    bool found = true;
    must(checkpoint_load(run->experiment, NULL, small_run_file(run, "none"), &place, &found, &error));
    assert_true(!found && place.task == 0 && place.iteration == 0);
}

/* Behind the last task nothing is left to compute with a state, which is neither written nor read. */
RUN_TEST(the_last_place_has_no_state, NULL)
{
    struct checkpoint_place place;
    size_t n;
    uint64_t size;
    small_run_save(run, "resume", SMALL_RUN_TASKS, 0);
    must(file_size(small_run_file(run, "resume"), &size, &error));
    assert_between(size, 1, 1000);
    must(small_run_train(run, 0, NULL));
    float *then = state_of(run, &n);
    must(load(run, &place));
    assert_true(place.task == SMALL_RUN_TASKS && place.rows == 77);
    expect_state(run, then);
}

/* The resume file of place (1, 0) with other metadata. */
static void rewrite(struct small_run *run, const char *task, const char *iteration, const char *program)
{
    struct safetensors *file;
    must(safetensors_open(&file, small_run_file(run, "good"), WEIGHTS_WHOLE, &error));
    struct safetensors_metadata metadata[] = {{"program", program},
                                              {"suite_hash", run->experiment->identity},
                                              {"seed", "1"},
                                              {"task", task},
                                              {"iteration", iteration},
                                              {"rows", "77"}};
    must(safetensors_write(small_run_file(run, "resume"), safetensors_at(file, 0), safetensors_count(file), metadata, 6,
                           &error));
    safetensors_close(file);
}

RUN_TEST(impossible_places_are_refused, NULL)
{
    static const char *const places[][2] = {{"4", "0"},  {"3", "1"}, {"1", "7"},   {"-1", "0"},
                                            {"0", "-1"}, {"x", "0"}, {"1", "1e3"}, {"1", ""}};
    struct checkpoint_place place;
    small_run_save(run, "good", 1, 6);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        rewrite(run, places[i][0], places[i][1], "mtil " MTIL_VERSION);
        must_not_load(run, "task and iteration");
    }
    rewrite(run, "1", "0", "mtil 0.0.0-other");
    must_not_load(run, "mtil 0.0.0-other", "mtil " MTIL_VERSION);
    rewrite(run, "1", "6", "mtil " MTIL_VERSION);
    must(load(run, &place));
    assert_true(place.task == 1 && place.iteration == 6);
}

/* Every byte of the length, and some of metadata, the tensors' descriptions and the tensors. */
static size_t next_place(size_t at, size_t header)
{
    enum { METADATA = 320 };
    return at + (at < sizeof(uint64_t) ? 1 : at < METADATA ? 3 : at < header ? 37 : 9973);
}

/* Whatever bit is flipped, and whatever is cut or appended: nothing of the file is used, and it says what to do. */
RUN_TEST(damaged_files_change_nothing, NULL)
{
    struct bytes bytes;
    size_t n, flips = 0;
    uint64_t header;
    must(small_run_train(run, 0, NULL));
    small_run_save(run, "good", 1, 6);
    must(file_read(small_run_file(run, "good"), FILE_LIMIT, &bytes, &error));
    memcpy(&header, bytes.data, sizeof header);
    must(small_run_train(run, 1, NULL));
    float *before = state_of(run, &n);
    for (size_t at = 0; at < bytes.size; at = next_place(at, 8 + (size_t)header), flips++) {
        bytes.data[at] ^= (uint8_t)(1 << flips % 8);
        scratch_write(&run->scratch, "resume", bytes.data, bytes.size);
        bytes.data[at] ^= (uint8_t)(1 << flips % 8);
        must_not_load(run, "");
    }
    for (size_t part = 0; part <= 8; part++) { /* there is a zero behind it */
        scratch_write(&run->scratch, "resume", bytes.data, part < 8 ? bytes.size * part / 8 : bytes.size + 1);
        must_not_load(run, "");
    }
    expect_state(run, before);
    assert_true(flips > 150);
    bytes_free(&bytes);
}

/* What is written is what was there when it was taken, whatever was trained and which inputs were read since. */
RUN_TEST(written_beside_the_training, NULL)
{
    struct checkpoint_writer writer = {0};
    const char *path = small_run_format("%s/resume", run->scratch.path);
    for (size_t task = 0; task < 2; task++) {
        must(small_run_train(run, task, NULL));
        must(checkpoint_writer_save(&writer, run->experiment, NULL, path,
                                    &(struct checkpoint_place){.task = task, .iteration = 6, .rows = 77}, &error));
        small_run_save(run, "expected", task, 6);
    }
    must(small_run_train(run, 2, NULL));
    run->experiment->identity[0] ^= 1;
    must(checkpoint_writer_finish(&writer, &error));
    small_run_expect_same(path, small_run_file(run, "expected"));
    must(checkpoint_writer_finish(&writer, &error));
}

/* By the next look, the next save, or the end, whichever comes first, and once. */
RUN_TEST(failures_are_told, NULL)
{
    struct checkpoint_writer writer = {0};
    const struct checkpoint_place place = {.task = 1, .iteration = 6, .rows = 77};
    const char *path = small_run_format("%s/missing/resume", run->scratch.path);
    must(checkpoint_writer_save(&writer, run->experiment, NULL, path, &place, &error));
    while (checkpoint_writer_check(&writer, &error) == OK)
        sched_yield();
    assert_non_null(strstr(error.message, "missing/resume"));
    must(checkpoint_writer_save(&writer, run->experiment, NULL, path, &place, &error));
    must_refuse(checkpoint_writer_save(&writer, run->experiment, NULL, path, &place, &error), ERROR_IO,
                "missing/resume");
    must(checkpoint_writer_save(&writer, run->experiment, NULL, path, &place, &error));
    assert_int_equal(checkpoint_writer_finish(&writer, &error), ERROR_IO);
    must(checkpoint_writer_finish(&writer, &error));
}

/* What archives refuse of their own. Arrays that do not fit are test_safetensors'; that they keep what resume files hold is
 * test_every_method's. */
RUN_TEST(no_file_no_archive, NULL)
{
    struct archive *archive;
    const float value = 1;
    assert_int_equal(archive_open(&archive, small_run_file(run, "none.safetensors"), &error), ERROR_IO);
    assert_null(archive);
    archive_close(NULL);
    archive_create(&archive); /* a count that no memory holds is an error, not a small allocation */
    must_refuse(archive_put(archive, "huge", SAFETENSOR_F32, SIZE_MAX / 2, &value, &error), ERROR_MEMORY, "huge");
    archive_close(archive);
}
