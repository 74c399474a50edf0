#include "core/file_digest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "tests/datasets/scratch.h"
#include "tests/test.h"

static struct error error;

struct fixture {
    struct scratch scratch;
    char *file, *folder;
};

static void set_up(struct fixture *f)
{
    scratch_create(&f->scratch);
    f->file = path_format("%s/weights", f->scratch.path);
    f->folder = path_format("%s/cache", f->scratch.path);
    scratch_write_text(&f->scratch, "weights", "abc");
}

static void tear_down(struct fixture *f)
{
    free(f->file);
    free(f->folder);
    scratch_remove(&f->scratch);
}

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
static bool reads(const struct fixture *f, int64_t (*clock)(void), const char *expected)
{
    int blocks = 0;
    struct file_digest digest;
    struct file_digest_settings settings = {
        .folder = f->folder, .kept_from = 3, .stopped = count_block, .context = &blocks, .clock = clock};
    if (file_digest_read(&digest, f->file, &settings, &error) != OK)
        fail_msg("%s", error.message);
    if (expected != NULL)
        assert_string_equal(digest.hash, expected);
    assert_int_equal(digest.bytes, digest.stamp.size);
    return blocks > 0;
}

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* FIPS 180-2 */

TEST(a_file_is_read_once)
{
    struct fixture f;
    set_up(&f);
    assert_true(reads(&f, an_hour_later, ABC));
    assert_false(reads(&f, an_hour_later, ABC));
    assert_false(reads(&f, NULL, ABC));
    scratch_write_text(&f.scratch, "weights", "ab");
    assert_true(reads(&f, an_hour_later, NULL));
    assert_true(reads(&f, an_hour_later, NULL)); /* that is too small to be kept */
    scratch_write_text(&f.scratch, "weights", "abc");
    assert_true(reads(&f, an_hour_later, ABC)); /* other times */
    tear_down(&f);
}

TEST(what_was_just_written_is_not_kept)
{
    struct fixture f;
    set_up(&f);
    assert_true(reads(&f, NULL, ABC));
    assert_true(reads(&f, an_hour_later, ABC));
    assert_false(reads(&f, NULL, ABC));
    tear_down(&f);
}

TEST(a_folder_that_cannot_be_is_no_failure)
{
    struct fixture f;
    set_up(&f);
    scratch_write_text(&f.scratch, "cache", "a file");
    assert_true(reads(&f, an_hour_later, ABC));
    tear_down(&f);
}

static bool always(void *context)
{
    (void)context;
    return true;
}

TEST(what_is_no_file_is_refused_and_a_stop_ends_it)
{
    struct fixture f;
    struct file_digest digest;
    struct file_digest_settings settings = {.stopped = always};
    set_up(&f);
    assert_int_equal(file_digest_read(&digest, f.file, &settings, &error), ERROR_STOPPED);
    assert_int_equal(file_digest_read(&digest, f.scratch.path, &settings, &error), ERROR_FORMAT);
    assert_int_equal(unlink(f.file), 0);
    assert_int_equal(file_digest_read(&digest, f.file, &settings, &error), ERROR_IO);
    assert_int_equal(mkfifo(f.file, 0600), 0);
    assert_int_equal(file_digest_read(&digest, f.file, &settings, &error), ERROR_FORMAT);
    assert_non_null(strstr(error.message, "expected a file"));
    tear_down(&f);
}
