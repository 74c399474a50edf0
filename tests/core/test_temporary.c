/* What a killed writer left is removed by the next one; what has a living writer, or is somebody's own, stays. */
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "core/text.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

/* Those in a folder, in order; the pattern's stars stand for what is drawn in temporary names. */
static void expect_names(const char *folder, const char *pattern)
{
    struct directory found;
    struct text names = {0};
    assert_ok(directory_list(&found, folder, &error));
    for (size_t i = 0; i < found.count; i++)
        text_add(&names, "%s%s", i > 0 ? " " : "", found.names[i]);
    if (fnmatch(pattern, names.data, 0) != 0)
        fail_msg("expected %s, found %s", pattern, names.data);
    directory_free(&found);
    text_free(&names);
}

/* --- Killed writers --- */

static void begin_file(const char *target)
{
    struct file_writer writer;
    if (file_writer_open(&writer, target, NULL) != OK || file_writer_write(&writer, "half", 4, NULL) != OK ||
        fflush(writer.stream) != 0)
        _exit(1);
}

static void begin_folder(const char *target)
{
    struct temporary temporary;
    if (temporary_create_folder(&temporary, target, NULL) != OK)
        _exit(1);
    char *path = path_format("%s/deep/er", temporary.path), *file = path_format("%s/half", path);
    if (directory_create(path, NULL) != OK || file_write(file, "half", 4, NULL) != OK)
        _exit(1);
}

/* In a process that begins to write target and is killed. */
static void die_writing(void (*begin)(const char *), const char *target)
{
    int ended;
    pid_t writer = fork();
    if (writer == 0) {
        begin(target);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(writer, &ended, 0), writer);
    assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
}

/* And what living ones write is not. */
ROOT_TEST(what_a_killed_writer_left_is_removed_by_the_next)
{
    struct file_writer file;
    struct temporary tree;
    assert_ok(file_writer_open(&file, "c.bin", &error));
    assert_ok(temporary_create_folder(&tree, "pages", &error));
    die_writing(begin_folder, "report");
    expect_names(".", "c.bin.tmp-mtil-* pages.tmp-mtil-* report.tmp-mtil-*");
    assert_ok(file_write("b.bin", "whole", 5, &error));
    expect_names(".", "b.bin c.bin.tmp-mtil-* pages.tmp-mtil-*");
    die_writing(begin_file, "a.bin");
    expect_names(".", "a.bin.tmp-mtil-* b.bin c.bin.tmp-mtil-* pages.tmp-mtil-*");
    temporary_remove(&tree);
    assert_ok(file_writer_close(&file, &error));
    assert_ok(file_write("b.bin", "whole", 5, &error));
    expect_names(".", "b.bin c.bin");
}

ROOT_TEST(two_writers_of_one_file_do_not_meet)
{
    struct file_writer one, other;
    struct bytes bytes;
    assert_ok(file_writer_open(&one, "a", &error));
    assert_ok(file_writer_open(&other, "a", &error));
    assert_ok(file_writer_write(&one, "one", 3, &error));
    assert_ok(file_writer_write(&other, "other", 5, &error));
    assert_ok(file_writer_close(&other, &error));
    assert_ok(file_writer_close(&one, &error));
    assert_ok(file_read("a", 100, &bytes, &error));
    assert_string_equal((char *)bytes.data, "one");
    bytes_free(&bytes);
    expect_names(".", "a");
}

ROOT_TEST(a_folder_takes_the_place_of_one_that_was_left)
{
    struct temporary folder;
    die_writing(begin_folder, "weights.pth");
    expect_names(".", "weights.pth.tmp-mtil-*");
    scratch_run(&scratch, "cd weights.pth.tmp-mtil-* && touch archive");
    assert_ok(temporary_create_folder(&folder, "other.pth", &error));
    expect_names(".", "other.pth.tmp-mtil-*");
    temporary_remove(&folder);
}

ROOT_TEST(many_files_are_cleared_together)
{
    struct file_writer writer, other;
    assert_ok(directory_create("x/y", &error));
    die_writing(begin_file, "x/y/a");
    assert_ok(file_writer_open(&other, "x/b", &error));
    assert_ok(file_writer_open_one_of_many(&writer, "x/y/c", &error));
    expect_names("x/y", "a.tmp-mtil-* c.tmp-mtil-*");
    temporary_clear_below(".");
    expect_names("x/y", "c.tmp-mtil-*");
    assert_ok(file_writer_close(&writer, &error));
    expect_names("x/y", "c");
    expect_names("x", "b.tmp-mtil-* y");
    file_writer_abandon(&other);
}

/* --- What is no left-over --- */

ROOT_TEST(what_only_looks_similar_stays)
{
    static const char own[] = ".tmp-mtil-01234567 a.tmp a.tmp-1234 a.tmp-mtil-0123456 a.tmp-mtil-01234567.txt "
                              "a.tmp-mtil-0123456A a.tmp-mtil-0123456g d.tmp-mtil-01234567 kept l.tmp-mtil-01234567 "
                              "p.tmp-mtil-01234567";
    scratch_run(&scratch, "mkdir d.tmp-mtil-01234567; touch d.tmp-mtil-01234567/notes"); /* and without a lock */
    scratch_run(&scratch, "ln -s kept l.tmp-mtil-01234567; mkfifo p.tmp-mtil-01234567; touch kept .tmp-mtil-01234567 "
                          "a.tmp a.tmp-1234 a.tmp-mtil-0123456 a.tmp-mtil-01234567.txt a.tmp-mtil-0123456A "
                          "a.tmp-mtil-0123456g");
    expect_names(".", own);
    assert_ok(file_write("z", "x", 1, &error));
    scratch_run(&scratch, "rm z");
    expect_names(".", own);
    expect_names("d.tmp-mtil-01234567", "notes");
}

ROOT_TEST(what_others_own_stays)
{
    if (geteuid() != 0)
        skip();
    scratch_run(&scratch, "mkdir d.tmp-mtil-01234567; touch d.tmp-mtil-01234567/mtil.lock f.tmp-mtil-01234567; "
                          "chown 1:1 d.tmp-mtil-01234567 f.tmp-mtil-01234567");
    temporary_clear(".");
    expect_names(".", "d.tmp-mtil-01234567 f.tmp-mtil-01234567");
}

ROOT_TEST(a_folder_whose_removal_was_cut_short_is_removed)
{
    scratch_run(&scratch, "mkdir d.tmp-mtil-01234567");
    assert_ok(file_write("a", "x", 1, &error));
    expect_names(".", "a");
}

/* --- Failures --- */

ROOT_TEST(a_folder_that_is_not_there_is_reported)
{
    struct file_writer writer;
    struct temporary temporary;
    assert_fails(file_writer_open(&writer, "absent/a", &error), ERROR_IO, "absent/a");
    assert_fails(temporary_create_folder(&temporary, "absent/a", &error), ERROR_IO, "absent/a");
    temporary_remove(&temporary);
}
