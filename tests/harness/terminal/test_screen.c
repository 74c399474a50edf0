/* The screen of mtil watch on a terminal of its own, and without one. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "harness/terminal/screen.h"
#include "tests/test.h"

#define LONG 60.0 /* seconds that nobody waits to the end */

static void expect_fit(const char *text, size_t columns, size_t rows, const char *expected)
{
    struct text fitted = {0};
    screen_fit(&fitted, text, columns, rows);
    assert_string_equal(fitted.data ? fitted.data : "", expected);
    text_free(&fitted);
}

TEST(texts_are_cut_to_the_terminal)
{
    expect_fit("", 10, 3, "");
    expect_fit("one\ntwo\n", 10, 3, "one\ntwo");
    expect_fit("abcdef\n\nxyz\n", 4, 9, "abcd\n\nxyz");
    expect_fit("a\nb\nc\n", 4, 2, "a\nb");
    expect_fit("██░░ 5%", 4, 1, "██░░");
    expect_fit("漢字", 3, 1, "漢"); /* two columns each */
}

/* Both ends of a terminal of 20 columns and 3 rows. */
struct terminal {
    int master;
    FILE *out;
};

static void open_terminal(struct terminal *terminal)
{
    terminal->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal->master < 0 || grantpt(terminal->master) != 0 || unlockpt(terminal->master) != 0)
        skip();
    terminal->out = fopen(ptsname(terminal->master), "we");
    assert_true(terminal->out != NULL);
    assert_int_equal(ioctl(terminal->master, TIOCSWINSZ, &(struct winsize){.ws_row = 3, .ws_col = 20}), 0);
}

static void close_terminal(struct terminal *terminal)
{
    fclose(terminal->out);
    close(terminal->master);
}

/* What is written may arrive in pieces. */
static void expect_output(const struct terminal *terminal, const char *part)
{
    char output[4096] = "";
    size_t size = 0;
    while (strstr(output, part) == NULL) {
        struct pollfd readable = {.fd = terminal->master, .events = POLLIN};
        if (size + 1 == sizeof output || poll(&readable, 1, (int)(LONG * 1000)) != 1)
            assert_string_equal(output, part);
        ssize_t got = read(terminal->master, output + size, sizeof output - 1 - size);
        assert_true(got > 0);
        size += (size_t)got;
        output[size] = 0;
    }
}

TEST(texts_are_drawn_over_one_another)
{
    struct terminal terminal;
    struct stop stop = {0};
    open_terminal(&terminal);
    setenv("TERM", "xterm", 1);
    struct screen screen = {.out = terminal.out};
    screen_show(&screen, "a line that is far too long for it\nsecond\nthird\nfourth\n");
    expect_output(&terminal, "\033[Ha line that is far t\033[K\r\nsecond\033[K\r\nthird\033[K\033[J");
    assert_true(screen_wait(&screen, 0.01, NULL)); /* time is up */
    screen_show(&screen, "less\n");
    expect_output(&terminal, "\033[Hless\033[K\033[J");
    setenv("TERM", "dumb", 1); /* shows escape sequences as they are */
    screen_show(&screen, "plain\n");
    expect_output(&terminal, "plain\r\n");
    assert_true(screen_wait(&screen, 0.01, &stop));
    atomic_store(&stop.signal, 2);
    assert_false(screen_wait(&screen, LONG, &stop));
    screen_close(&screen);
    close_terminal(&terminal);
}

TEST(elsewhere_lines_come_when_they_change)
{
    char *written = NULL;
    size_t size = 0;
    struct screen screen = {.out = open_memstream(&written, &size)};
    assert_non_null(screen.out);
    screen_show(&screen, "a\n");
    screen_show(&screen, "a\n");
    screen_show(&screen, "b\n");
    assert_true(screen_wait(&screen, 0.01, NULL));
    screen_close(&screen);
    fclose(screen.out);
    assert_string_equal(written, "a\nb\n");
    free(written);
}
