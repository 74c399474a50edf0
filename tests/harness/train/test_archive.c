#include <string.h>

#include "core/file.h"
#include "harness/train/archive.h"
#include "tests/datasets/scratch.h"
#include "tests/test.h"

static struct error error;

struct fixture {
    struct scratch scratch;
    struct backend *backend;
    struct arena arena;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    scratch_create(&fixture.scratch);
    if (backend_open(&fixture.backend, &(struct backend_settings){.name = "cpu", .threads = 1}, &error) != OK ||
        fixture.backend->ops->arena_create(fixture.backend, &fixture.arena, 1 << 20, "test", &error) != OK)
        return -1;
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    f->backend->ops->arena_destroy(f->backend, &f->arena);
    backend_close(f->backend);
    scratch_remove(&f->scratch);
    return 0;
}

static const float floats[3] = {1.5f, -2.25f, 0.0f};
static const int32_t integers[2] = {-7, INT32_MAX};

static void write_archive(struct fixture *f, const char *path)
{
    struct archive *archive;
    float *device = arena_take(&f->arena, sizeof floats);
    assert_non_null(device);
    assert_int_equal(f->backend->ops->upload(f->backend, device, floats, sizeof floats, &error), OK);
    archive_create(&archive);
    assert_int_equal(archive_put_device(archive, f->backend, "a.values", SAFETENSOR_F32, 3, device, &error), OK);
    char passing[16] = "b.steps"; /* names and values are copied */
    int32_t values[2] = {integers[0], integers[1]};
    assert_int_equal(archive_put(archive, passing, SAFETENSOR_I32, 2, values, &error), OK);
    memset(passing, 'x', sizeof passing - 1);
    memset(values, 0, sizeof values);
    assert_int_equal(archive_put(archive, "nothing", SAFETENSOR_F32, 0, NULL, &error), OK);
    char name[16];
    for (int i = 0; i < 100; i++) { /* more than fit at first */
        snprintf(name, sizeof name, "many.%d", i);
        assert_int_equal(archive_put(archive, name, SAFETENSOR_I32, 1, &i, &error), OK);
    }
    const struct safetensors_metadata metadata[] = {{"seed", "12"}};
    assert_int_equal(archive_write(archive, path, metadata, 1, &error), OK);
    archive_close(archive);
}

TEST(round_trip)
{
    struct fixture *f = *state;
    const char *path = scratch_file(&f->scratch, "a.safetensors");
    write_archive(f, path);
    struct archive *archive;
    assert_int_equal(archive_open(&archive, path, &error), OK);
    float values[3], *device = arena_take(&f->arena, sizeof values);
    int32_t steps[2], last;
    assert_int_equal(archive_get(archive, "a.values", SAFETENSOR_F32, 3, values, &error), OK);
    assert_memory_equal(values, floats, sizeof floats);
    assert_int_equal(archive_get_device(archive, f->backend, "a.values", SAFETENSOR_F32, 3, device, &error), OK);
    memset(values, 0, sizeof values);
    assert_int_equal(f->backend->ops->download(f->backend, values, device, sizeof values, &error), OK);
    assert_memory_equal(values, floats, sizeof floats);
    assert_int_equal(archive_get(archive, "b.steps", SAFETENSOR_I32, 2, steps, &error), OK);
    assert_memory_equal(steps, integers, sizeof integers);
    assert_int_equal(archive_get(archive, "many.99", SAFETENSOR_I32, 1, &last, &error), OK);
    assert_int_equal(last, 99);
    assert_string_equal(archive_metadata(archive, "seed"), "12");
    assert_null(archive_metadata(archive, "task"));
    archive_close(archive);
}

TEST(what_does_not_fit_is_told)
{
    struct fixture *f = *state;
    const char *path = scratch_file(&f->scratch, "b.safetensors");
    write_archive(f, path);
    struct archive *archive;
    float values[8];
    assert_int_equal(archive_open(&archive, path, &error), OK);
    assert_int_equal(archive_get(archive, "a.value", SAFETENSOR_F32, 3, values, &error), ERROR_FORMAT);
    assert_non_null(strstr(error.message, "a.value"));
    assert_non_null(strstr(error.message, "b.safetensors"));
    assert_int_equal(archive_get(archive, "a.values", SAFETENSOR_F32, 4, values, &error), ERROR_FORMAT);
    assert_non_null(strstr(error.message, "[4]"));
    assert_non_null(strstr(error.message, "[3]"));
    assert_int_equal(archive_get(archive, "a.values", SAFETENSOR_I32, 3, values, &error), ERROR_FORMAT);
    assert_non_null(strstr(error.message, "I32"));
    assert_non_null(strstr(error.message, "F32"));
    assert_int_equal(archive_get_device(archive, f->backend, "a.values", SAFETENSOR_F32, 2, values, &error),
                     ERROR_FORMAT);
    archive_close(archive);
}

TEST(no_file_no_archive)
{
    struct fixture *f = *state;
    struct archive *archive = (struct archive *)&error;
    assert_int_equal(archive_open(&archive, scratch_file(&f->scratch, "none.safetensors"), &error), ERROR_IO);
    assert_null(archive);
    scratch_write_text(&f->scratch, "junk.safetensors", "junk");
    assert_int_equal(archive_open(&archive, scratch_file(&f->scratch, "junk.safetensors"), &error), ERROR_FORMAT);
    assert_null(archive);
    archive_close(NULL);
}

/* A count that no memory holds is an error, not a small allocation. */
TEST(impossible_sizes)
{
    struct archive *archive;
    float value = 1;
    archive_create(&archive);
    assert_int_equal(archive_put(archive, "huge", SAFETENSOR_F32, SIZE_MAX / 2, &value, &error), ERROR_MEMORY);
    assert_non_null(strstr(error.message, "huge"));
    archive_close(archive);
}

TEST(a_folder_that_is_not_there)
{
    struct fixture *f = *state;
    struct archive *archive;
    archive_create(&archive);
    assert_int_equal(archive_write(archive, scratch_file(&f->scratch, "no/such/a.safetensors"), NULL, 0, &error),
                     ERROR_IO);
    assert_false(file_exists(scratch_file(&f->scratch, "no")));
    archive_close(archive);
}

TEST_GROUP(set_up, tear_down)
