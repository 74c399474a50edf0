/* What a log ends with, and where it is written. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "harness/sweep/child.h"
#include "tests/datasets/scratch.h"
#include "tests/test.h"

static void expect(const struct scratch *scratch, const char *text, off_t begin, const char *error, const char *line)
{
    char message[LOG_TAIL_MESSAGE];
    scratch_write_text(scratch, "run.log", text);
    log_tail_error(scratch_file(scratch, "run.log"), begin, message);
    assert_string_equal(message, error);
    log_tail_line(scratch_file(scratch, "run.log"), begin, message);
    assert_string_equal(message, line);
}

TEST(errors_and_lines)
{
    struct scratch scratch;
    scratch_create(&scratch);
    expect(&scratch, "", 0, "", "");
    expect(&scratch, "\n\n", 0, "", "");
    expect(&scratch, "mtil: task 1 of 3\n", 0, "mtil: task 1 of 3", "mtil: task 1 of 3");
    expect(&scratch, "one\nmtil: error: the disk burnt", 0, "the disk burnt", "mtil: error: the disk burnt");
    expect(&scratch, "mtil: error: old\nmtil: error: new\nKilled\n\n", 0, "new", "Killed");
    expect(&scratch, "mtil: error: old\nmtil: stopped\n", 17, "mtil: stopped", "mtil: stopped");
    scratch_remove(&scratch);
}

/* Only the end is read, and no half line is taken for a whole one. */
TEST(long_logs)
{
    enum { SIZE = 50000 };
    struct scratch scratch;
    char *text = malloc(SIZE + 64);
    assert_non_null(text);
    memset(text, 'x', SIZE);
    scratch_create(&scratch);
    for (size_t i = 99; i < SIZE; i += 100)
        text[i] = '\n';
    strcpy(text + SIZE, "last");
    expect(&scratch, text, 0, "last", "last");
    memset(text, 'x', SIZE); /* one line of 50000 characters */
    text[SIZE] = 0;
    char message[LOG_TAIL_MESSAGE];
    scratch_write_text(&scratch, "run.log", text);
    log_tail_line(scratch_file(&scratch, "run.log"), 0, message);
    assert_int_equal(strlen(message), LOG_TAIL_MESSAGE - 1);
    scratch_remove(&scratch);
    free(text);
}

TEST(no_log)
{
    char message[LOG_TAIL_MESSAGE];
    log_tail_error("/nowhere/at all", 0, message);
    assert_string_equal(message, "");
}

/* In a folder that others may write to. */
TEST(logs_are_not_written_through_links)
{
    struct scratch scratch;
    char word[] = "nothing", *words[] = {word};
    const struct strings nothing = {1, words};
    struct child child;
    struct bytes bytes;
    struct error error;
    scratch_create(&scratch);
    scratch_write_text(&scratch, "victim", "precious");
    assert_int_equal(symlink("victim", scratch_file(&scratch, "run.log")), 0);
    const char *log = scratch_file(&scratch, "run.log");
    assert_int_equal(child_start(&child, &nothing, log, &error), ERROR_IO);
    assert_non_null(strstr(error.message, "run.log: expected a file, found a symbolic link"));
    assert_int_equal(file_read(scratch_file(&scratch, "victim"), 100, &bytes, &error), OK);
    assert_string_equal((const char *)bytes.data, "precious");
    bytes_free(&bytes);
    scratch_remove(&scratch);
}

int main(int argc, char **argv)
{
    (void)argv;
    return argc > 1 ? 0 : test_run(); /* 0 as its own child */
}
