#include "core/file.h"
#include "harness/train/archive.h"
#include "tests/harness/small_run.h"

static const float floats[3] = {1.5f, -2.25f, 0.0f};
static const int32_t integers[2] = {-7, INT32_MAX};

/* "a.safetensors" in the run's folder, with values of host and device. */
static struct archive *write_and_open(struct small_run *run)
{
    struct archive *archive;
    struct model *model = &run->experiment->model;
    const struct safetensors_metadata metadata[] = {{"seed", "12"}};
    struct tensor device;
    char passing[16] = "b.steps"; /* names and values are copied */
    int32_t values[2] = {integers[0], integers[1]};
    must(tensor_take(&device, &model->task_memory, TENSOR_F32, "values", 1, (size_t[]){3}, &error));
    must(model->backend->ops->upload(model->backend, device.data, floats, sizeof floats, &error));
    archive_create(&archive);
    must(archive_put_device(archive, model->backend, "a.values", SAFETENSOR_F32, 3, device.data, &error));
    must(archive_put(archive, passing, SAFETENSOR_I32, 2, values, &error));
    memset(passing, 'x', sizeof passing - 1);
    memset(values, 0, sizeof values);
    must(archive_put(archive, "nothing", SAFETENSOR_F32, 0, NULL, &error));
    for (int i = 0; i < 100; i++) /* more than fit at first */
        must(archive_put(archive, small_run_format("many.%d", i), SAFETENSOR_I32, 1, &i, &error));
    must(archive_write(archive, small_run_file(run, "a.safetensors"), metadata, 1, &error));
    archive_close(archive);
    must(archive_open(&archive, small_run_file(run, "a.safetensors"), &error));
    return archive;
}

RUN_TEST(round_trip, NULL)
{
    struct archive *archive = write_and_open(run);
    struct model *model = &run->experiment->model;
    struct tensor device;
    float values[3];
    int32_t steps[2], last;
    must(archive_get(archive, "a.values", SAFETENSOR_F32, 3, values, &error));
    assert_memory_equal(values, floats, sizeof floats);
    must(tensor_take(&device, &model->task_memory, TENSOR_F32, "again", 1, (size_t[]){3}, &error));
    must(archive_get_device(archive, model->backend, "a.values", SAFETENSOR_F32, 3, device.data, &error));
    assert_memory_equal(small_run_values(run, device.data, 3), floats, sizeof floats);
    must(archive_get(archive, "b.steps", SAFETENSOR_I32, 2, steps, &error));
    assert_memory_equal(steps, integers, sizeof integers);
    must(archive_get(archive, "many.99", SAFETENSOR_I32, 1, &last, &error));
    assert_int_equal(last, 99);
    assert_string_equal(archive_metadata(archive, "seed"), "12");
    assert_null(archive_metadata(archive, "task"));
    archive_close(archive);
}

RUN_TEST(what_does_not_fit_is_told, NULL)
{
    struct archive *archive = write_and_open(run);
    float values[8];
    must_refuse(archive_get(archive, "a.value", SAFETENSOR_F32, 3, values, &error), ERROR_FORMAT, "a.value",
                "a.safetensors");
    must_refuse(archive_get(archive, "a.values", SAFETENSOR_F32, 4, values, &error), ERROR_FORMAT, "[4]", "[3]");
    must_refuse(archive_get(archive, "a.values", SAFETENSOR_I32, 3, values, &error), ERROR_FORMAT, "I32", "F32");
    must_refuse(
        archive_get_device(archive, run->experiment->model.backend, "a.values", SAFETENSOR_F32, 2, values, &error),
        ERROR_FORMAT, "a.values");
    archive_close(archive);
}

RUN_TEST(no_file_no_archive, NULL)
{
    struct archive *archive;
    assert_int_equal(archive_open(&archive, small_run_file(run, "none.safetensors"), &error), ERROR_IO);
    assert_null(archive);
    scratch_write_text(&run->scratch, "junk.safetensors", "junk");
    assert_int_equal(archive_open(&archive, small_run_file(run, "junk.safetensors"), &error), ERROR_FORMAT);
    assert_null(archive);
    archive_close(NULL);
    archive_create(&archive); /* a count that no memory holds is an error, not a small allocation */
    must_refuse(archive_put(archive, "huge", SAFETENSOR_F32, SIZE_MAX / 2, floats, &error), ERROR_MEMORY, "huge");
    assert_int_equal(archive_write(archive, small_run_file(run, "no/such/a.safetensors"), NULL, 0, &error), ERROR_IO);
    assert_false(file_exists(small_run_file(run, "no")));
    archive_close(archive);
}
