#include "core/digest.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/datasets/root.h"
#include "tests/test.h"

/* When what was written a moment ago is old. */
static int64_t an_hour_later(void)
{
    return ((int64_t)time(NULL) + 3600) * 1000000000;
}

static bool count_block(void *context)
{
    ++*(int *)context;
    return false;
}

/* Returns whether the file was read for it. */
static bool reads(int64_t (*clock)(void), const char *expected)
{
    int blocks = 0;
    struct file_digest digest;
    struct file_digest_settings settings = {
        .folder = "cache", .kept_from = 3, .stopped = count_block, .context = &blocks, .clock = clock};
    assert_ok(file_digest_read(&digest, "weights", &settings, &error));
    if (expected != NULL)
        assert_string_equal(digest.hash, expected);
    assert_int_equal(digest.bytes, digest.stamp.size);
    return blocks > 0;
}

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* FIPS 180-2 */

ROOT_TEST(a_file_is_read_once)
{
    scratch_write_text(&scratch, "weights", "abc");
    assert_true(reads(an_hour_later, ABC));
    assert_false(reads(an_hour_later, ABC));
    assert_false(reads(NULL, ABC));
    scratch_write_text(&scratch, "weights", "ab");
    assert_true(reads(an_hour_later, NULL));
    assert_true(reads(an_hour_later, NULL)); /* that is too small to be kept */
    scratch_write_text(&scratch, "weights", "abc");
    assert_true(reads(an_hour_later, ABC)); /* other times */
}

ROOT_TEST(what_was_just_written_is_not_kept)
{
    scratch_write_text(&scratch, "weights", "abc");
    assert_true(reads(NULL, ABC));
    assert_true(reads(an_hour_later, ABC));
    assert_false(reads(NULL, ABC));
}

ROOT_TEST(a_folder_that_cannot_be_is_no_failure)
{
    scratch_write_text(&scratch, "weights", "abc");
    scratch_write_text(&scratch, "cache", "a file");
    assert_true(reads(an_hour_later, ABC));
}

static bool always(void *context)
{
    (void)context;
    return true;
}

ROOT_TEST(what_is_no_file_is_refused_and_a_stop_ends_it)
{
    struct file_digest digest;
    struct file_digest_settings settings = {.stopped = always};
    scratch_write_text(&scratch, "weights", "abc");
    assert_fails(file_digest_read(&digest, "weights", &settings, &error), ERROR_STOPPED, "");
    assert_fails(file_digest_read(&digest, ".", &settings, &error), ERROR_FORMAT, "");
    assert_int_equal(unlink("weights"), 0);
    assert_fails(file_digest_read(&digest, "weights", &settings, &error), ERROR_IO, "");
    assert_int_equal(mkfifo("weights", 0600), 0);
    assert_fails(file_digest_read(&digest, "weights", &settings, &error), ERROR_FORMAT, "expected a file");
}
