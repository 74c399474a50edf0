/* What archives refuse of their own. Arrays that do not fit are test_safetensors', damaged files and those that cannot be written
 * test_checkpoint's; that they keep what resume files hold is test_every_method's. */
#include "harness/train/archive.h"
#include "tests/harness/small_run.h"

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
