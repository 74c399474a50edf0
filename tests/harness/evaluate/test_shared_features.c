/* Features that runs share: taken from a file only where computing them would give the same. */
#include "harness/evaluate/shared_features.h"

#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "core/seen.h"
#include "tests/harness/small_run.h"

enum { FILES = SMALL_RUN_TASKS, IMAGES = 6, WIDTH = 64, EMBED = 16 };

struct values {
    float means[IMAGES * WIDTH], features[IMAGES * EMBED];
};

/* test/ and train/ of two classes below the run's folder, which is the data root. */
static void draw(const struct small_run *run, unsigned color)
{
    for (unsigned i = 0; i < 12; i++)
        scratch_write_png(&run->scratch,
                          small_run_format("%s/%s/%u.png", i < 6 ? "train" : "test", i % 2 == 0 ? "red" : "blue", i),
                          30 + (int)i, 40, color + i * 0x000900);
}

static void reopen(struct small_run *run, const char *more)
{
    const char *folder = small_run_format("run.cache_folder=%s", small_run_file(run, "cache"));
    small_run_reopen(
        run, 1, WORDS("run.cache=disk", folder, "data.order=first,second,third,folder", "tasks.folder.path=.", more));
}

/* What is taken of a task, and how many images were encoded for it. */
static size_t take(struct small_run *run, size_t task, struct values *values)
{
    struct shared_features shared;
    struct backend_spy spy = {0};
    small_run_watch(run, &spy);
    memset(values, 0, sizeof *values);
    must(shared_features_open(&shared, &run->experiment->model, &run->experiment->data, &error));
    must(shared_features_take(&shared, &run->experiment->data.tasks[task], values->means, values->features, NULL,
                              &error));
    shared_features_close(&shared);
    return spy.encodings;
}

/* What is taken of the files in a run that is the first one. */
static void take_first(struct small_run *run, struct values *values)
{
    draw(run, 0x800000);
    reopen(run, NULL);
    assert_true(take(run, FILES, values) > 0);
}

/* The files of features, and the last one's path. Beside them is what was seen, as a GPU's proof. */
static size_t count_features(const struct small_run *run, const char **path)
{
    struct shared_files list;
    size_t count = 0;
    must(shared_files_list(&list, small_run_file(run, "cache"), &error));
    for (size_t i = 0; i < list.count; i++)
        if (strstr(list.files[i].path, SEEN_FILE) == NULL) {
            *path = small_run_keep(strdup(list.files[i].path));
            count++;
        }
    shared_files_free(&list);
    return count;
}

/* The one file of features. NULL: none. */
static const char *features_file(const struct small_run *run)
{
    const char *path = NULL;
    assert_true(count_features(run, &path) <= 1);
    return path;
}

RUN_TEST(the_second_run_encodes_nothing, NULL)
{
    struct values first, second, alone;
    take_first(run, &first);
    reopen(run, NULL);
    assert_int_equal(take(run, FILES, &second), 0);
    assert_memory_equal(&first, &second, sizeof first);
    take(run, 0, &second); /* generated images are not shared */
    assert_non_null(features_file(run));
    reopen(run, "run.cache=memory");
    assert_true(take(run, FILES, &alone) > 0);
    assert_memory_equal(&first, &alone, sizeof first);
}

/* Computed again, and kept in the same file. */
static void expect_fresh(struct small_run *run, const struct values *old, bool same)
{
    struct values fresh, again;
    assert_true(take(run, FILES, &fresh) > 0);
    assert_int_equal(memcmp(old, &fresh, sizeof fresh) == 0, same);
    assert_int_equal(take(run, FILES, &again), 0);
    assert_memory_equal(&fresh, &again, sizeof fresh);
    assert_non_null(features_file(run));
}

static void change_a_weight(const struct small_run *run)
{
    struct clip *clip = run->experiment->model.clip;
    const struct parameter *p = parameters_find(clip->parameters, "visual.class_embedding");
    float *values = small_run_group(clip->parameters) + p->offset;
    values[0] += 1;
    must(parameters_upload(clip->parameters, p, values, &error));
    must(clip_save(clip, small_run_file(run, "clip.safetensors"), &error));
}

/* Other weights have a file of their own. */
RUN_TEST(other_images_and_weights_are_computed, NULL)
{
    struct values values, others;
    const char *last;
    take_first(run, &values);
    draw(run, 0x000080);
    reopen(run, NULL);
    expect_fresh(run, &values, false);
    change_a_weight(run);
    reopen(run, NULL);
    assert_true(take(run, FILES, &others) > 0);
    assert_int_equal(count_features(run, &last), 2);
}

/* Products of another precision have a file of their own. */
RUN_TEST(another_precision_is_computed, NULL)
{
    struct values values, rounded;
    struct backend *backend;
    struct backend_settings settings = {.name = test_backend_name(), .precision = PRECISION_BF16, .threads = 1};
    if (backend_open(&backend, &settings, &error) != OK) {
        small_run_close(run);
        skip(); /* the processor cannot */
    }
    backend_close(backend);
    take_first(run, &values);
    reopen(run, "run.precision=bf16");
    assert_true(take(run, FILES, &rounded) > 0);
    assert_memory_not_equal(&values, &rounded, sizeof values);
    reopen(run, NULL);
    assert_int_equal(take(run, FILES, &rounded), 0);
    assert_memory_equal(&values, &rounded, sizeof values);
}

RUN_TEST(damaged_files_are_written_anew, NULL)
{
    struct values values;
    struct bytes bytes;
    take_first(run, &values);
    const char *path = features_file(run);
    assert_non_null(path);
    must(file_read(path, FILE_LIMIT, &bytes, &error));
    size_t size = bytes.size;
    const size_t places[] = {0, size / 2, size / 4 * 3, size - 1}; /* the header's length, then numbers */
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        unsigned char *byte = (unsigned char *)bytes.data + places[i];
        *byte ^= 0x10;
        must(file_write(path, bytes.data, size, &error));
        *byte ^= 0x10;
        expect_fresh(run, &values, true);
    }
    assert_int_equal(truncate(path, (off_t)size / 2), 0);
    expect_fresh(run, &values, true);
    assert_int_equal(truncate(path, 0), 0);
    expect_fresh(run, &values, true);
    bytes_free(&bytes);
}

/* And not kept where nothing is allowed. */
RUN_TEST(without_room_they_are_computed, NULL)
{
    struct values values;
    draw(run, 0x800000);
    reopen(run, "run.cache_disk_megabytes=0");
    assert_true(take(run, FILES, &values) > 0);
    assert_null(features_file(run));
}
