/* What archives refuse; that they keep what resume files hold is test_checkpoint's and test_every_method's. */
#include "core/file.h"
#include "harness/train/archive.h"
#include "tests/harness/small_run.h"

RUN_TEST(what_does_not_fit_is_told, NULL)
{
    struct archive *archive;
    float values[8] = {1.5f, -2.25f, 0};
    archive_create(&archive);
    must(archive_put(archive, "a.values", SAFETENSOR_F32, 3, values, &error));
    must(archive_put(archive, "nothing", SAFETENSOR_F32, 0, NULL, &error));
    must(archive_write(archive, small_run_file(run, "a.safetensors"), NULL, 0, &error));
    archive_close(archive);
    must(archive_open(&archive, small_run_file(run, "a.safetensors"), &error));
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
    const float value = 1;
    assert_int_equal(archive_open(&archive, small_run_file(run, "none.safetensors"), &error), ERROR_IO);
    assert_null(archive);
    scratch_write_text(&run->scratch, "junk.safetensors", "junk");
    assert_int_equal(archive_open(&archive, small_run_file(run, "junk.safetensors"), &error), ERROR_FORMAT);
    assert_null(archive);
    archive_close(NULL);
    archive_create(&archive); /* a count that no memory holds is an error, not a small allocation */
    must_refuse(archive_put(archive, "huge", SAFETENSOR_F32, SIZE_MAX / 2, &value, &error), ERROR_MEMORY, "huge");
    assert_int_equal(archive_write(archive, small_run_file(run, "no/such/a.safetensors"), NULL, 0, &error), ERROR_IO);
    assert_false(file_exists(small_run_file(run, "no")));
    archive_close(archive);
}
