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

static struct {
    FILE *stream;
    char *text;
    size_t size;
    struct progress *progress;
} screen;

static void open_screen(enum progress_style style, int columns)
{
    screen.stream = open_memstream(&screen.text, &screen.size);
    assert_non_null(screen.stream);
    now = 100;
    progress_create(&screen.progress, &(struct progress_settings){screen.stream, style, test_clock, columns});
}

static void close_screen(const char *expected)
{
    progress_destroy(screen.progress);
    fclose(screen.stream);
    if (expected != NULL)
        assert_string_equal(screen.text, expected);
    free(screen.text);
}

static void report(const struct progress_state *state)
{
    progress_report(screen.progress, state);
}

static void train(double seconds, uint64_t step, double loss)
{
    struct progress_work work = {.done = {(double)step}, .total = {200}};
    now = 100 + seconds;
    report(&(struct progress_state){.activity = "train",
                                    .subject = "dtd",
                                    .task = 4,
                                    .tasks = 11,
                                    .step = step,
                                    .steps = 100,
                                    .loss = loss,
                                    .images = 64 * step,
                                    .work = &work});
}

TEST(plain_lines_come_now_and_then)
{
    open_screen(PROGRESS_AUTOMATIC, 0); /* a memory stream is no terminal */
    train(0, 0, 0);
    for (uint64_t step = 1; step < 50; step++)
        train((double)step / 10, step, 2);
    train(5, 50, 1.25);
    train(9, 90, 1);
    train(10, 100, 0.5);
    close_screen("mtil: task 4 of 11  train dtd  0/100\n"
                 "mtil: task 4 of 11  train dtd  50/100  loss 1.250  640 images/s  15 s left\n"
                 "mtil: task 4 of 11  train dtd  100/100  loss 0.500  640 images/s  10 s left\n");
}

TEST(rewritten_line_fits_and_is_not_torn)
{
    open_screen(PROGRESS_LINE, 31); /* cut before the loss */
    train(0, 0, 0);
    train(0.05, 1, 2);
    train(0.2, 2, 2);
    struct log log = progress_log(screen.progress, LOG_INFO);
    log_debug(&log, "not shown");
    log_warn(&log, "%s is cut", "a.jpg");
    progress_end(screen.progress);
    log_info(&log, "done");
    close_screen("task 4 of 11  train dtd  0/100"
                 "\r\033[Ktask 4 of 11  train dtd  2/100"
                 "\r\033[Kmtil: warning: a.jpg is cut\n"
                 "task 4 of 11  train dtd  2/100\n"
                 "mtil: done\n");
}

/* An estimate that is half done says nothing about the runs that follow. */
TEST(what_begins_after_an_end_counts_from_there)
{
    struct progress_work work = {.total = {20}};
    open_screen(PROGRESS_PLAIN, 0);
    for (uint64_t step = 0; step < 10; step++, now += 0.4)
        report(&(struct progress_state){.activity = "estimate", .step = step, .steps = 20});
    progress_end(screen.progress);
    for (uint64_t step = 0; step <= 6; step++, now += 10) {
        work.done[0] = (double)step;
        report(&(struct progress_state){
            .activity = "sweep", .step = step, .steps = 20, .work = &work, .at_least = step > 0 ? 144 : 0});
    }
    close_screen("mtil: estimate  0/20\nmtil: sweep  0/20\nmtil: sweep  1/20\nmtil: sweep  2/20\n"
                 "mtil: sweep  3/20\nmtil: sweep  4/20\nmtil: sweep  5/20  2 min 30 s left\n"
                 "mtil: sweep  6/20  2 min 24 s left\n"); /* at least */
}

TEST(odd_reports_are_harmless)
{
    open_screen(PROGRESS_PLAIN, 0);
    progress_report(NULL, &(struct progress_state){.activity = "train"});
    progress_end(NULL);
    progress_destroy(NULL);
    report(&(struct progress_state){.activity = "write", .step = 3});
    report(&(struct progress_state){.activity = "train", .loss = NAN, .step = 9, .steps = 3});
    report(&(struct progress_state){.activity = "write", .subject = "dtd", .steps = 9});
    now += 0.5; /* what takes no time is one line */
    report(&(struct progress_state){.activity = "write", .subject = "dtd", .step = 9, .steps = 9});
    close_screen("mtil: write  3\nmtil: train  9/3\nmtil: write dtd  0/9\n");
}

/* What was done before a stop does not count; and what is decoded within the run is no end of it. */
TEST(going_on_counts_time_from_today)
{
    open_screen(PROGRESS_PLAIN, 0);
    for (uint64_t step = 50; step <= 60; step++)
        train((double)step, step, 0);
    now += 10;
    report(&(struct progress_state){.activity = "decode", .step = 3, .steps = 9});
    close_screen("mtil: task 4 of 11  train dtd  50/100\n"
                 "mtil: task 4 of 11  train dtd  55/100  64 images/s  2 min 25 s left\n"
                 "mtil: task 4 of 11  train dtd  60/100  64 images/s  2 min 20 s left\n"
                 "mtil: decode  3/9  2 min 20 s left\n");
}

static struct heard {
    int times;
    double left, rate;
} heard;

static void hear(void *context, const struct progress_news *news)
{
    assert_ptr_equal(context, &heard);
    heard = (struct heard){heard.times + 1, news->seconds_left, news->images_per_second};
    assert_string_equal(news->state->subject, "dtd");
}

/* A quiet screen has warnings alone. */
TEST(a_listener_hears_once_a_second_however_quiet)
{
    open_screen(PROGRESS_QUIET, 0);
    progress_listen(NULL, hear, &heard);
    progress_listen(screen.progress, hear, &heard);
    train(0, 0, 0);
    assert_true(heard.times == 1 && heard.left < 0 && heard.rate == 0);
    train(0.9, 9, 0);
    assert_int_equal(heard.times, 1);
    for (uint64_t step = 5; step <= 9; step++)
        train((double)step / 10, step, 0);
    for (uint64_t step = 1; step <= 5; step++)
        train((double)step, 10 * step, 0);
    train(5.5, 55, 0);
    assert_int_equal(heard.times, 6);
    assert_true(fabs(heard.left - 15) < 1e-9 && fabs(heard.rate - 640) < 1e-9);
    progress_listen(screen.progress, NULL, NULL);
    train(9, 90, 0);
    assert_int_equal(heard.times, 6);
    struct log log = progress_log(screen.progress, LOG_WARN);
    log_info(&log, "a note");
    log_warn(&log, "a warning");
    close_screen("mtil: warning: a warning\n");
}

static void *warn_often(void *log)
{
    for (size_t i = 0; i < 200; i++)
        log_warn(log, "image %zu", i);
    return NULL;
}

TEST(messages_of_threads_stay_whole)
{
    pthread_t threads[4];
    size_t lines = 0;
    open_screen(PROGRESS_PLAIN, 0);
    struct log log = progress_log(screen.progress, LOG_WARN);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, warn_often, &log), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    fflush(screen.stream);
    for (const char *line = screen.text; *line != 0; line = strchr(line, '\n') + 1, lines++)
        assert_memory_equal(line, "mtil: warning: image ", 21);
    assert_int_equal(lines, 800);
    close_screen(NULL);
}
