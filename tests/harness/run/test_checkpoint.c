#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "harness/run/checkpoint.h"
#include "harness/train/trainer.h"
#include "models/files/safetensors.h"
#include "tests/adapters/adapters.h"
#include "tests/harness/small_run.h"

static void train(struct small_run *run, size_t task)
{
    must(train_task(&(struct training){.run = &run->experiment->method, .task = &run->experiment->data.tasks[task]},
                    &error));
}

/* Everything of a group that a stop must not lose; the caller frees. */
static float *state_of(const struct small_run *run, const struct parameters *group, size_t *n)
{
    size_t second = group->second_moment != NULL ? group->values_count : 0;
    *n = 2 * group->values_count + second + group->segments + group->flags_count;
    float *all = malloc(*n * sizeof *all), *next = all;
    const void *parts[] = {group->values, group->first_moment, group->steps, group->flags, group->second_moment};
    const size_t counts[] = {group->values_count, group->values_count, group->segments, group->flags_count, second};
    struct backend *backend = run->experiment->model.backend;
    assert_non_null(all);
    for (size_t i = 0; i < 5 && counts[i] > 0; i++) {
        must(backend->ops->download(backend, next, parts[i], counts[i] * sizeof *next, &error));
        next += counts[i];
    }
    return all;
}

static void expect_state(const struct small_run *run, const struct parameters *group, const float *expected)
{
    size_t n;
    float *found = state_of(run, group, &n);
    assert_memory_equal(found, expected, n * sizeof *found);
    free(found);
}

/* Saves, goes on (which changes everything), loads. */
TEST(adapters_within_a_task)
{
    struct small_run run;
    struct checkpoint_place place = {1, 6, 77}, found_place;
    bool found;
    size_t n;
    small_run_open(&run, 1, NULL);
    struct adapters *adapters = run.experiment->model.adapters;
    const struct parameters *group = adapters->towers[TOWER_TEXT].parameters;
    int32_t counts[5], frozen[5], counts_then[5], frozen_then[5];
    train(&run, 0);
    train(&run, 1);
    must(checkpoint_save(run.experiment, NULL, small_run_file(&run, "resume"), &place, &error));
    float *then = state_of(&run, group, &n);
    must(adapters_read_counts(adapters, TOWER_TEXT, 1, counts_then, &error));
    must(adapters_read_frozen(adapters, TOWER_TEXT, 1, frozen_then, &error));
    train(&run, 2);
    float *later = state_of(&run, group, &n);
    assert_memory_not_equal(then, later, n * sizeof *then);
    must(checkpoint_load(run.experiment, NULL, small_run_file(&run, "resume"), &found_place, &found, &error));
    assert_true(found && found_place.task == 1 && found_place.iteration == 6 && found_place.rows == 77);
    expect_state(&run, group, then);
    must(adapters_read_counts(adapters, TOWER_TEXT, 1, counts, &error));
    must(adapters_read_frozen(adapters, TOWER_TEXT, 1, frozen, &error));
    assert_memory_equal(counts, counts_then, sizeof counts);
    assert_memory_equal(frozen, frozen_then, sizeof frozen);
    free(then);
    free(later);
    small_run_close(&run);
}

/* With an optimizer that has one moment. */
TEST(all_weights)
{
    const char *const overrides[] = {"method.name=continual_ft", "training.optimizer=sgd", NULL},
                      *const one_thread[] = {overrides[0], overrides[1], "run.threads=1", NULL};
    struct small_run run;
    struct checkpoint_place place = {0, 3, 77}, found_place;
    bool found;
    size_t n;
    small_run_open(&run, 1, overrides);
    train(&run, 0);
    must(checkpoint_save(run.experiment, NULL, small_run_file(&run, "resume"), &place, &error));
    float *then = state_of(&run, run.experiment->model.clip->parameters, &n);
    small_run_reopen(&run, 1, one_thread);
    must(checkpoint_load(run.experiment, NULL, small_run_file(&run, "resume"), &found_place, &found, &error));
    assert_true(found && found_place.task == 0 && found_place.iteration == 3);
    expect_state(&run, run.experiment->model.clip->parameters, then);
    free(then);
    small_run_close(&run);
}

/* Between tasks the autoencoders of the tasks so far are kept, those to come are not. */
TEST(the_selector)
{
    struct small_run run;
    struct selector *trained, *restored;
    struct checkpoint_place place = {2, 0, 77}, found_place;
    bool found;
    small_run_open(&run, 1, NULL);
    must(selector_create(&trained, &run.experiment->model, &run.experiment->data, &error));
    for (size_t k = 0; k < 2; k++)
        must(selector_train(trained, &run.experiment->data.tasks[k], NULL, &error));
    must(checkpoint_save(run.experiment, trained, small_run_file(&run, "resume"), &place, &error));
    must(selector_create(&restored, &run.experiment->model, &run.experiment->data, &error));
    must(checkpoint_load(run.experiment, restored, small_run_file(&run, "resume"), &found_place, &found, &error));
    assert_int_equal(restored->trained, 2);
    assert_true(restored->thresholds[0] == trained->thresholds[0] && restored->thresholds[1] == trained->thresholds[1]);
    for (size_t k = 0; k < 2; k++) {
        size_t n = trained->coders[k]->parameters->values_count;
        float *a = small_run_values(&run, trained->coders[k]->parameters->values, n);
        float *b = small_run_values(&run, restored->coders[k]->parameters->values, n);
        assert_memory_equal(a, b, n * sizeof *a);
        free(a);
        free(b);
    }
    selector_destroy(trained);
    selector_destroy(restored);
    small_run_close(&run);
}

TEST(no_file_is_a_fresh_start)
{
    struct small_run run;
    struct checkpoint_place place = {9, 9, 9};
    bool found = true;
    small_run_open(&run, 1, NULL);
    must(checkpoint_load(run.experiment, NULL, small_run_file(&run, "none"), &place, &found, &error));
    assert_true(!found && place.task == 0 && place.iteration == 0);
    small_run_close(&run);
}

static void refused(struct small_run *run, const char *const *words)
{
    struct checkpoint_place place;
    bool found;
    assert_int_equal(checkpoint_load(run->experiment, NULL, small_run_file(run, "resume"), &place, &found, &error),
                     ERROR_FORMAT);
    error_tells(words);
}

TEST(another_run_is_refused)
{
    struct small_run run;
    small_run_open(&run, 1, NULL);
    must(checkpoint_save(run.experiment, NULL, small_run_file(&run, "resume"), &(struct checkpoint_place){.task = 1},
                         &error));
    small_run_reopen(&run, 2, NULL);
    refused(&run, (const char *const[]){"resume", "expected seed 2, found 1", "delete", NULL});
    small_run_reopen(&run, 1, (const char *const[]){"adapter.experts=6", NULL});
    refused(&run, (const char *const[]){"resume", "suite_hash", "delete", NULL});
    small_run_reopen(&run, 1, (const char *const[]){"run.threads=1", NULL}); /* says how, not what */
    struct checkpoint_place place;
    bool found;
    must(checkpoint_load(run.experiment, NULL, small_run_file(&run, "resume"), &place, &found, &error));
    small_run_close(&run);
}

static bool removed_when_finished(struct small_run *run, size_t task, size_t iteration, uint64_t seed)
{
    char *path = strdup(small_run_file(run, "resume"));
    struct checkpoint_place place = {task, iteration, 0};
    must(checkpoint_save(run->experiment, NULL, path, &place, &error));
    small_run_reopen(run, seed, NULL);
    checkpoint_remove_finished(run->experiment, path);
    bool removed = !file_exists(path);
    small_run_reopen(run, 1, NULL);
    free(path);
    return removed;
}

TEST(only_finished_runs_are_removed)
{
    struct small_run run;
    small_run_open(&run, 1, NULL);
    assert_false(removed_when_finished(&run, 2, 3, 1));
    assert_false(removed_when_finished(&run, 3, 0, 2));
    assert_true(removed_when_finished(&run, 3, 0, 1));
    checkpoint_remove_finished(run.experiment, small_run_file(&run, "none"));
    small_run_close(&run);
}

/* Behind the last task nothing is left to compute with a state, which is neither written nor read. */
TEST(the_last_place_has_no_state)
{
    struct small_run run;
    struct checkpoint_place place = {SMALL_RUN_TASKS, 0, 77}, found_place;
    bool found;
    size_t n;
    uint64_t size;
    small_run_open(&run, 1, NULL);
    const struct parameters *group = run.experiment->model.adapters->towers[TOWER_TEXT].parameters;
    must(checkpoint_save(run.experiment, NULL, small_run_file(&run, "resume"), &place, &error));
    must(file_size(small_run_file(&run, "resume"), &size, &error));
    assert_in_range(size, 1, 1000);
    train(&run, 0);
    float *then = state_of(&run, group, &n);
    must(checkpoint_load(run.experiment, NULL, small_run_file(&run, "resume"), &found_place, &found, &error));
    assert_true(found && found_place.task == SMALL_RUN_TASKS && found_place.rows == 77);
    expect_state(&run, group, then);
    free(then);
    small_run_close(&run);
}

/* The resume file of place (1, 0) with other metadata. */
static void rewrite(struct small_run *run, const char *task, const char *iteration, const char *program)
{
    struct safetensors *file;
    must(safetensors_open(&file, small_run_file(run, "good"), &error));
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

TEST(impossible_places_are_refused)
{
    struct small_run run;
    static const char *const places[][2] = {{"4", "0"},  {"3", "1"}, {"1", "7"},   {"-1", "0"},
                                            {"0", "-1"}, {"x", "0"}, {"1", "1e3"}, {"1", ""}};
    small_run_open(&run, 1, NULL);
    must(checkpoint_save(run.experiment, NULL, small_run_file(&run, "good"), &(struct checkpoint_place){1, 6, 77},
                         &error));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        rewrite(&run, places[i][0], places[i][1], "mtil " MTIL_VERSION);
        refused(&run, (const char *const[]){"resume", "task and iteration", "delete", NULL});
    }
    rewrite(&run, "1", "0", "mtil 0.0.0-other");
    refused(&run, (const char *const[]){"mtil 0.0.0-other", "mtil " MTIL_VERSION, NULL});
    rewrite(&run, "1", "6", "mtil " MTIL_VERSION);
    struct checkpoint_place place;
    bool found;
    must(checkpoint_load(run.experiment, NULL, small_run_file(&run, "resume"), &place, &found, &error));
    assert_true(place.task == 1 && place.iteration == 6);
    small_run_close(&run);
}

TEST(a_cut_file_is_told)
{
    struct small_run run;
    struct bytes bytes;
    struct checkpoint_place place;
    bool found;
    small_run_open(&run, 1, NULL);
    must(checkpoint_save(run.experiment, NULL, small_run_file(&run, "good"), &(struct checkpoint_place){0}, &error));
    must(file_read(small_run_file(&run, "good"), FILE_LIMIT, &bytes, &error));
    for (size_t part = 0; part < 8; part++) {
        scratch_write(&run.scratch, "resume", bytes.data, bytes.size * part / 8);
        assert_int_not_equal(
            checkpoint_load(run.experiment, NULL, small_run_file(&run, "resume"), &place, &found, &error), OK);
        error_tells((const char *const[]){"resume", "delete the file", NULL});
    }
    bytes_free(&bytes);
    small_run_close(&run);
}

/* Of length and metadata every byte, of the tensors' descriptions and of the tensors some. */
static size_t next_place(size_t at, size_t header)
{
    enum { METADATA = 320 };
    return at + (at < METADATA ? 1 : at < header ? 37 : 9973);
}

/* Whatever bit is flipped, and whatever is cut or appended: nothing of the file is used, and it says what to do. */
TEST(damaged_files_change_nothing)
{
    struct small_run run;
    struct bytes bytes;
    size_t n, flips = 0;
    uint64_t header;
    small_run_open(&run, 1, NULL);
    train(&run, 0);
    must(checkpoint_save(run.experiment, NULL, small_run_file(&run, "good"), &(struct checkpoint_place){1, 6, 77},
                         &error));
    must(file_read(small_run_file(&run, "good"), FILE_LIMIT, &bytes, &error));
    memcpy(&header, bytes.data, sizeof header);
    train(&run, 1);
    const struct parameters *group = run.experiment->model.adapters->towers[TOWER_TEXT].parameters;
    float *before = state_of(&run, group, &n);
    for (size_t at = 0; at < bytes.size; at = next_place(at, 8 + (size_t)header), flips++) {
        bytes.data[at] ^= (uint8_t)(1 << flips % 8);
        scratch_write(&run.scratch, "resume", bytes.data, bytes.size);
        bytes.data[at] ^= (uint8_t)(1 << flips % 8);
        refused(&run, (const char *const[]){"resume", "delete", NULL});
    }
    scratch_write(&run.scratch, "resume", bytes.data, bytes.size + 1); /* there is a zero behind it */
    refused(&run, (const char *const[]){"resume", "delete", NULL});
    expect_state(&run, group, before);
    assert_true(flips > 350);
    free(before);
    bytes_free(&bytes);
    small_run_close(&run);
}

TEST(edited_places_are_refused)
{
    static const char *const edits[][2] = {{"\"iteration\":\"6\"", "\"iteration\":\"5\""},
                                           {"\"task\":\"1\"", "\"task\":\"2\""},
                                           {"\"seed\":\"1\"", "\"seed\":\"2\""},
                                           {"\"rows\":\"77\"", "\"rows\":\"76\""},
                                           {SAFETENSORS_DIGEST, "digest_mtil"}};
    struct small_run run;
    struct bytes bytes;
    small_run_open(&run, 1, NULL);
    must(checkpoint_save(run.experiment, NULL, small_run_file(&run, "good"), &(struct checkpoint_place){1, 6, 77},
                         &error));
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        must(file_read(small_run_file(&run, "good"), FILE_LIMIT, &bytes, &error));
        uint8_t *at = memmem(bytes.data, bytes.size, edits[i][0], strlen(edits[i][0]));
        assert_non_null(at);
        memcpy(at, edits[i][1], strlen(edits[i][1]));
        scratch_write(&run.scratch, "resume", bytes.data, bytes.size);
        refused(&run, (const char *const[]){"resume", "edited", "delete", NULL});
        bytes_free(&bytes);
    }
    small_run_close(&run);
}

static void expect_same_file(const struct small_run *run, const char *name, const char *expected)
{
    struct bytes a, b;
    must(file_read(small_run_file(run, name), FILE_LIMIT, &a, &error));
    must(file_read(small_run_file(run, expected), FILE_LIMIT, &b, &error));
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    bytes_free(&a);
    bytes_free(&b);
}

/* What is written is what was there when it was taken, whatever was trained and which inputs were read since. */
TEST(written_beside_the_training)
{
    struct small_run run;
    struct checkpoint_writer writer = {0};
    small_run_open(&run, 1, NULL);
    char *path = path_format("%s/resume", run.scratch.path);
    for (size_t task = 0; task < 2; task++) {
        struct checkpoint_place place = {task, 6, 77};
        train(&run, task);
        must(checkpoint_writer_save(&writer, run.experiment, NULL, path, &place, &error));
        must(checkpoint_save(run.experiment, NULL, small_run_file(&run, "expected"), &place, &error));
    }
    train(&run, 2);
    run.experiment->identity[0] ^= 1;
    must(checkpoint_writer_finish(&writer, &error));
    expect_same_file(&run, "resume", "expected");
    must(checkpoint_writer_finish(&writer, &error));
    free(path);
    small_run_close(&run);
}

/* By the next look, the next save, or the end, whichever comes first, and once. */
TEST(failures_are_told)
{
    struct small_run run;
    struct checkpoint_writer writer = {0};
    const struct checkpoint_place place = {1, 6, 77};
    small_run_open(&run, 1, NULL);
    char *path = path_format("%s/missing/resume", run.scratch.path);
    must(checkpoint_writer_save(&writer, run.experiment, NULL, path, &place, &error));
    while (checkpoint_writer_check(&writer, &error) == OK)
        sched_yield();
    assert_non_null(strstr(error.message, "missing/resume"));
    must(checkpoint_writer_save(&writer, run.experiment, NULL, path, &place, &error));
    assert_int_equal(checkpoint_writer_save(&writer, run.experiment, NULL, path, &place, &error), ERROR_IO);
    assert_non_null(strstr(error.message, "missing/resume"));
    must(checkpoint_writer_save(&writer, run.experiment, NULL, path, &place, &error));
    assert_int_equal(checkpoint_writer_finish(&writer, &error), ERROR_IO);
    must(checkpoint_writer_finish(&writer, &error));
    free(path);
    small_run_close(&run);
}
