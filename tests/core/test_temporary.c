/* What a killed writer left is removed by the next one; what has a living writer, or is somebody's own, stays. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

static void expect_names(const char *path, const char *const *names, size_t count)
{
    struct directory found;
    assert_ok(directory_list(&found, path, &error));
    assert_int_equal(found.count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(found.names[i], names[i]);
    directory_free(&found);
}

#define EXPECT_NAMES(path, ...)                                                                                        \
    expect_names(path, (const char *const[]){__VA_ARGS__},                                                             \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static size_t count_names(const char *path)
{
    struct directory found;
    assert_ok(directory_list(&found, path, &error));
    size_t count = found.count;
    directory_free(&found);
    return count;
}

/* --- Writers in other processes --- */

struct rival {
    pid_t id;
    int said;
};

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

/* A process that has begun to write target, and goes on for ever. */
static struct rival rival_start(void (*begin)(const char *), const char *target)
{
    int ends[2];
    char word;
    assert_int_equal(pipe(ends), 0);
    struct rival rival = {fork(), ends[0]};
    if (rival.id == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        begin(target);
        if (write(ends[1], "!", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(rival.said, &word, 1), 1);
    return rival;
}

static void rival_kill(struct rival *rival)
{
    int ended;
    kill(rival->id, SIGKILL);
    assert_int_equal(waitpid(rival->id, &ended, 0), rival->id);
    assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
    close(rival->said);
}

ROOT_TEST(what_a_killed_writer_left_is_removed_by_the_next)
{
    struct rival file = rival_start(begin_file, "a.bin"), tree = rival_start(begin_folder, "report");
    assert_int_equal(count_names("."), 2);
    assert_ok(file_write("b.bin", "whole", 5, &error));
    assert_int_equal(count_names("."), 3); /* both write still */
    rival_kill(&file);
    assert_ok(file_write("b.bin", "whole", 5, &error));
    assert_int_equal(count_names("."), 2);
    rival_kill(&tree);
    assert_ok(file_write("b.bin", "whole", 5, &error));
    EXPECT_NAMES(".", "b.bin");
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
    EXPECT_NAMES(".", "a");
}

ROOT_TEST(many_files_are_cleared_together)
{
    assert_ok(directory_create("x/y", &error));
    struct rival dead = rival_start(begin_file, "x/y/a"), living = rival_start(begin_file, "x/b");
    rival_kill(&dead);
    struct file_writer writer;
    assert_ok(file_writer_open_one_of_many(&writer, "x/y/c", &error));
    assert_int_equal(count_names("x/y"), 2);
    temporary_clear_below(".");
    assert_int_equal(count_names("x/y"), 1);
    assert_ok(file_writer_close(&writer, &error));
    EXPECT_NAMES("x/y", "c");
    assert_int_equal(count_names("x"), 2);
    rival_kill(&living);
}

/* --- What is no left-over --- */

static void touch(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT, 0644);
    assert_true(file >= 0);
    close(file);
}

ROOT_TEST(what_only_looks_similar_stays)
{
    static const char *const own[] = {
        ".tmp-mtil-01234567",  "a.tmp-1234", "a.tmp-mtil-0123456", "a.tmp-mtil-0123456g", "a.tmp-mtil-01234567.txt",
        "a.tmp-mtil-0123456A", "a.tmp"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        touch(own[i]);
    assert_int_equal(mkdir("d.tmp-mtil-01234567", 0755), 0); /* not empty, and without a lock */
    touch("d.tmp-mtil-01234567/notes");
    touch("kept");
    assert_int_equal(symlink("kept", "l.tmp-mtil-01234567"), 0);
    assert_int_equal(mkfifo("p.tmp-mtil-01234567", 0644), 0);
    size_t before = count_names(".");
    assert_ok(file_write("a", "x", 1, &error));
    assert_int_equal(count_names("."), before + 1);
    assert_true(file_exists("d.tmp-mtil-01234567/notes"));
}

ROOT_TEST(what_others_own_stays)
{
    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir("d.tmp-mtil-01234567", 0777), 0);
    touch("d.tmp-mtil-01234567/mtil.lock");
    touch("f.tmp-mtil-01234567");
    assert_int_equal(chown("d.tmp-mtil-01234567", 1, 1), 0);
    assert_int_equal(chown("f.tmp-mtil-01234567", 1, 1), 0);
    temporary_clear(".");
    EXPECT_NAMES(".", "d.tmp-mtil-01234567", "f.tmp-mtil-01234567");
}

ROOT_TEST(a_folder_whose_removal_was_cut_short_is_removed)
{
    assert_int_equal(mkdir("d.tmp-mtil-01234567", 0755), 0);
    assert_ok(file_write("a", "x", 1, &error));
    EXPECT_NAMES(".", "a");
}

/* --- Failures --- */

ROOT_TEST(a_folder_that_is_not_there_is_reported)
{
    struct temporary temporary;
    assert_fails(temporary_create_file(&temporary, "absent/a", &error), ERROR_IO, "absent/a");
    assert_fails(temporary_create_folder(&temporary, "absent/a", &error), ERROR_IO, "absent/a");
    temporary_remove(&temporary);
}
