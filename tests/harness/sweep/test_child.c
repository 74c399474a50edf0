/* Other programs: what they say comes back, and how they end; what a log ends with, and where it is written. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/sweep/child.h"
#include "tests/datasets/scratch.h"
#include "tests/test.h"

TEST(programs_are_run)
{
    static const struct {
        const char *words[7], *output, *failure; /* NULL: it succeeds */
    } cases[] = {
        {{"sh", "-c", "echo one; echo two >&2; cat; printf %s \"$1\"", "sh", "a b'c"}, "one\ntwo\na b'c", NULL},
        {{"true"}, "", NULL},
        {{"sh", "-c", "echo first; echo the reason >&2; echo; exit 3"},
         "first\nthe reason\n\n",
         "sh: exit status 3: the reason"},
        {{"sh", "-c", "kill -9 $$"}, "", "sh: ended by signal 9: "},
        {{"no-such-program-anywhere"}, NULL, "no-such-program-anywhere: there is no such program; "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error;
        struct text output = {0};
        const char *failure = cases[i].failure;
        assert_int_equal(child_run(cases[i].words, &output, &error), failure != NULL ? ERROR_IO : OK);
        if (cases[i].output != NULL)
            assert_string_equal(output.data, cases[i].output);
        if (failure != NULL)
            assert_memory_equal(error.message, failure, strlen(failure));
        text_free(&output);
    }
    struct text output = {0};
    const char *much[] = {"sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x", NULL};
    assert_ok(child_run(much, &output, &error));
    assert_int_equal(output.size, 300000);
    text_free(&output);
}

/* --- Logs --- */

static struct scratch scratch;

static void expect(const char *text, off_t begin, const char *failure, const char *line)
{
    char message[LOG_TAIL_MESSAGE];
    scratch_write_text(&scratch, "run.log", text);
    log_tail_error(scratch_file(&scratch, "run.log"), begin, message);
    assert_string_equal(message, failure);
    log_tail_line(scratch_file(&scratch, "run.log"), begin, message);
    assert_string_equal(message, line);
}

/* Of long ones only the end is read, and no half line is taken for a whole one. */
static void expect_ends(void)
{
    enum { SIZE = 50000 };
    char message[LOG_TAIL_MESSAGE], *text = calloc(SIZE + 64, 1);
    log_tail_error("/nowhere/at all", 0, message);
    assert_string_equal(message, "");
    expect("", 0, "", "");
    expect("\n\n", 0, "", "");
    expect("mtil: task 1 of 3\n", 0, "mtil: task 1 of 3", "mtil: task 1 of 3");
    expect("one\nmtil: error: the disk burnt", 0, "the disk burnt", "mtil: error: the disk burnt");
    expect("mtil: error: old\nmtil: error: new\nKilled\n\n", 0, "new", "Killed");
    expect("mtil: error: old\nmtil: stopped\n", 17, "mtil: stopped", "mtil: stopped");
    memset(text, 'x', SIZE);
    scratch_write_text(&scratch, "run.log", text); /* one line of 50000 characters */
    log_tail_line(scratch_file(&scratch, "run.log"), 0, message);
    assert_int_equal(strlen(message), LOG_TAIL_MESSAGE - 1);
    for (size_t i = 99; i < SIZE; i += 100)
        text[i] = '\n';
    strcpy(text + SIZE, "last");
    expect(text, 0, "last", "last");
    free(text);
}

/* Nor are they written through links, in a folder that others may write to. */
TEST(logs_are_read_from_their_end)
{
    char word[] = "nothing", *words[] = {word};
    const struct strings nothing = {1, words};
    struct child child;
    scratch_create(&scratch);
    expect_ends();
    assert_int_equal(symlink("victim", scratch_file(&scratch, "a.log")), 0);
    assert_fails(child_start(&child, &nothing, scratch_file(&scratch, "a.log"), &error), ERROR_IO,
                 "a.log: expected a file, found a symbolic link");
    assert_int_equal(access(scratch_file(&scratch, "victim"), F_OK), -1);
    scratch_remove(&scratch);
}

int main(int argc, char **argv)
{
    return argc > 1 ? 0 : test_run(); /* 0 as its own child */
}
