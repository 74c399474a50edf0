#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/terminal/progress.h"
#include "tests/test.h"

static double now; /* what the tests' clock shows */

static double test_clock(void)
{
    return now;
}

struct screen {
    FILE *stream;
    char *text;
    size_t size;
    struct progress *progress;
};

static void open_screen(struct screen *screen, enum progress_style style, int columns)
{
    *screen = (struct screen){0};
    screen->stream = open_memstream(&screen->text, &screen->size);
    assert_non_null(screen->stream);
    now = 100;
    struct progress_settings settings = {screen->stream, style, test_clock, columns};
    progress_create(&screen->progress, &settings);
}

static void close_screen(struct screen *screen, const char *expected)
{
    progress_destroy(screen->progress);
    fclose(screen->stream);
    assert_string_equal(screen->text, expected);
    free(screen->text);
}

static void train(struct screen *screen, double seconds, uint64_t step, double loss)
{
    now = 100 + seconds;
    struct progress_work work = {.done = {(double)step}, .total = {200}};
    struct progress_state state = {.activity = "train",
                                   .subject = "dtd",
                                   .task = 4,
                                   .tasks = 11,
                                   .step = step,
                                   .steps = 100,
                                   .loss = loss,
                                   .images = 64 * step,
                                   .work = &work};
    progress_report(screen->progress, &state);
}

TEST(plain_lines_come_now_and_then)
{
    struct screen screen;
    open_screen(&screen, PROGRESS_AUTOMATIC, 0); /* a memory stream is no terminal */
    train(&screen, 0, 0, 0);
    for (uint64_t step = 1; step < 50; step++)
        train(&screen, (double)step / 10, step, 2);
    train(&screen, 5, 50, 1.25);
    train(&screen, 9, 90, 1);
    train(&screen, 10, 100, 0.5);
    close_screen(&screen, "mtil: task 4 of 11  train dtd  0/100\n"
                          "mtil: task 4 of 11  train dtd  50/100  loss 1.250  640 images/s  15 s left\n"
                          "mtil: task 4 of 11  train dtd  100/100  loss 0.500  640 images/s  10 s left\n");
}

TEST(rewritten_line_fits_and_is_not_torn)
{
    struct screen screen;
    open_screen(&screen, PROGRESS_LINE, 31); /* cut before the loss */
    train(&screen, 0, 0, 0);
    train(&screen, 0.05, 1, 2);
    train(&screen, 0.2, 2, 2);
    struct log log = progress_log(screen.progress, LOG_INFO);
    log_debug(&log, "not shown");
    log_warn(&log, "%s is cut", "a.jpg");
    progress_end(screen.progress);
    log_info(&log, "done");
    close_screen(&screen, "task 4 of 11  train dtd  0/100"
                          "\r\033[Ktask 4 of 11  train dtd  2/100"
                          "\r\033[Kmtil: warning: a.jpg is cut\n"
                          "task 4 of 11  train dtd  2/100\n"
                          "mtil: done\n");
}

/* An estimate that is half done says nothing about the runs that follow. */
TEST(what_begins_after_an_end_counts_from_there)
{
    struct screen screen;
    open_screen(&screen, PROGRESS_PLAIN, 0);
    for (uint64_t step = 0; step < 10; step++, now += 0.4)
        progress_report(screen.progress, &(struct progress_state){.activity = "estimate", .step = step, .steps = 20});
    progress_end(screen.progress);
    struct progress_work work = {.total = {20}};
    progress_report(screen.progress, &(struct progress_state){.activity = "sweep", .steps = 20, .work = &work});
    for (uint64_t step = 1; step <= 6; step++) {
        now += 10;
        work.done[0] = (double)step;
        progress_report(
            screen.progress,
            &(struct progress_state){.activity = "sweep", .step = step, .steps = 20, .work = &work, .at_least = 144});
    }
    close_screen(&screen, "mtil: estimate  0/20\nmtil: sweep  0/20\nmtil: sweep  1/20\nmtil: sweep  2/20\n"
                          "mtil: sweep  3/20\nmtil: sweep  4/20\nmtil: sweep  5/20  2 min 30 s left\n"
                          "mtil: sweep  6/20  2 min 24 s left\n"); /* at least */
}

TEST(quiet_shows_warnings_alone)
{
    struct screen screen;
    open_screen(&screen, PROGRESS_QUIET, 0);
    struct log log = progress_log(screen.progress, LOG_WARN);
    train(&screen, 0, 0, 0);
    log_info(&log, "a note");
    log_warn(&log, "a warning");
    close_screen(&screen, "mtil: warning: a warning\n");
}

TEST(odd_reports_are_harmless)
{
    struct screen screen;
    open_screen(&screen, PROGRESS_PLAIN, 0);
    progress_report(NULL, &(struct progress_state){.activity = "train"});
    progress_end(NULL);
    progress_destroy(NULL);
    progress_report(screen.progress, &(struct progress_state){.activity = "write", .step = 3});
    progress_report(screen.progress, &(struct progress_state){.activity = "train", .loss = NAN, .step = 9, .steps = 3});
    close_screen(&screen, "mtil: write  3\nmtil: train  9/3\n");
}

TEST(what_takes_no_time_is_one_line)
{
    struct screen screen;
    open_screen(&screen, PROGRESS_PLAIN, 0);
    struct progress_state report = {.activity = "write", .subject = "dtd", .steps = 9};
    progress_report(screen.progress, &report);
    now += 0.5;
    report.step = 9;
    progress_report(screen.progress, &report);
    close_screen(&screen, "mtil: write dtd  0/9\n");
}

/* What was done before a stop does not count; and what is decoded within the run is no end of it. */
TEST(going_on_counts_time_from_today)
{
    struct screen screen;
    open_screen(&screen, PROGRESS_PLAIN, 0);
    for (uint64_t step = 50; step <= 60; step++)
        train(&screen, (double)step, step, 0);
    now += 10;
    progress_report(screen.progress, &(struct progress_state){.activity = "decode", .step = 3, .steps = 9});
    close_screen(&screen, "mtil: task 4 of 11  train dtd  50/100\n"
                          "mtil: task 4 of 11  train dtd  55/100  64 images/s  2 min 25 s left\n"
                          "mtil: task 4 of 11  train dtd  60/100  64 images/s  2 min 20 s left\n"
                          "mtil: decode  3/9  2 min 20 s left\n");
}

struct heard {
    int times;
    double left, rate;
};

static void hear(void *context, const struct progress_news *news)
{
    struct heard *heard = context;
    heard->times++;
    heard->left = news->seconds_left;
    heard->rate = news->images_per_second;
    assert_string_equal(news->state->subject, "dtd");
}

TEST(a_listener_hears_once_a_second_however_quiet)
{
    struct screen screen;
    struct heard heard = {0};
    open_screen(&screen, PROGRESS_QUIET, 0);
    progress_listen(NULL, hear, &heard);
    progress_listen(screen.progress, hear, &heard);
    train(&screen, 0, 0, 0);
    assert_true(heard.times == 1 && heard.left < 0 && heard.rate == 0);
    train(&screen, 0.9, 9, 0);
    assert_int_equal(heard.times, 1);
    for (uint64_t step = 5; step <= 9; step++)
        train(&screen, (double)step / 10, step, 0);
    for (uint64_t step = 1; step <= 5; step++)
        train(&screen, (double)step, 10 * step, 0);
    train(&screen, 5.5, 55, 0);
    assert_int_equal(heard.times, 6);
    assert_true(fabs(heard.left - 15) < 1e-9 && fabs(heard.rate - 640) < 1e-9);
    progress_listen(screen.progress, NULL, NULL);
    train(&screen, 9, 90, 0);
    assert_int_equal(heard.times, 6);
    close_screen(&screen, "");
}

static void *warn_often(void *log)
{
    for (size_t i = 0; i < 200; i++)
        log_warn(log, "image %zu", i);
    return NULL;
}

TEST(messages_of_threads_stay_whole)
{
    struct screen screen;
    open_screen(&screen, PROGRESS_PLAIN, 0);
    struct log log = progress_log(screen.progress, LOG_WARN);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, warn_often, &log), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    progress_destroy(screen.progress);
    fclose(screen.stream);
    size_t lines = 0;
    for (const char *line = screen.text; *line != 0; line = strchr(line, '\n') + 1, lines++)
        assert_true(strncmp(line, "mtil: warning: image ", 21) == 0);
    assert_int_equal(lines, 800);
    free(screen.text);
}
