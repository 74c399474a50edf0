/* Time left, from clocks that the tests make up; and the runs of a sweep, which it is derived of there. */
#include <math.h>

#include "harness/sweep/sweep.h"
#include "tests/test.h"

/* A run of tasks: `steps` iterations, then an evaluation. Amounts say nothing about how long they take. */
enum { TRAINING = 1, EVALUATION = 3, TASKS = 4, STEPS = 100 };

struct simulation {
    double step, evaluation;         /* seconds of a unit */
    double warm_up, pause_at, pause; /* seconds more in the first iteration, and at an iteration of the whole run */
    double slower_at, slower;        /* from this iteration on, times as long */
    struct time_left left;
    struct progress_work work;
    double now;
    double told[TASKS * (STEPS + 1)], when[TASKS * (STEPS + 1)];
    size_t count;
};

static void advance(struct simulation *s, size_t kind, double amount, double seconds)
{
    s->now += seconds;
    s->work.done[kind] += amount;
    time_left_note(&s->left, s->now, &s->work);
    s->told[s->count] = time_left_seconds(&s->left, &s->work);
    s->when[s->count++] = s->now;
}

static void simulate(struct simulation *s)
{
    s->work = (struct progress_work){.total = {[TRAINING] = TASKS * STEPS, [EVALUATION] = TASKS * 50}};
    s->now = 1000;
    time_left_note(&s->left, s->now, &s->work);
    for (size_t i = 0; i < TASKS * STEPS; i++) {
        double step = s->slower > 0 && (double)i >= s->slower_at ? s->slower * s->step : s->step;
        advance(s, TRAINING, 1, step + (i == 0 ? s->warm_up : 0) + ((double)i == s->pause_at ? s->pause : 0));
        if (i % STEPS == STEPS - 1)
            advance(s, EVALUATION, 50, s->evaluation * 50);
    }
}

/* The largest factor by which a time was wrong from then on, where at least a second was left. */
static double worst_after(const struct simulation *s, double begin)
{
    double worst = 1;
    for (size_t i = 0; i < s->count; i++) {
        double truth = s->now - s->when[i];
        if (truth < 1 || s->when[i] < begin)
            continue;
        if (s->told[i] <= 0)
            fail_msg("no time at %g of %g s", s->when[i] - 1000, s->now - 1000);
        worst = fmax(worst, fmax(s->told[i] / truth, truth / s->told[i]));
    }
    return worst;
}

TEST(times_are_foretold)
{
    static const struct {
        struct simulation given;
        size_t reports; /* after which it has to be right, */
        double later, bound;
    } cases[] = {
        {{.step = 0.2, .evaluation = 0.2}, 60, 0, 1.001},
        /* evaluation turns out 5 times as fast as training by the amounts, or as slow: known after the first task */
        {{.step = 0.2, .evaluation = 0.04}, STEPS, 0, 1.001},
        {{.step = 0.2, .evaluation = 1}, STEPS, 0, 1.001},
        /* a machine that is shared from now on: followed within a minute or so */
        {{.step = 0.5, .evaluation = 0.5, .slower_at = STEPS, .slower = 3}, STEPS, 60, 1.35},
        /* a first iteration of 15 s instead of 0.2, as of a run whose end seemed to be hours away */
        {{.step = 0.2, .evaluation = 0.2, .warm_up = 15}, 0, 16, 1.001},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct simulation s = cases[i].given;
        simulate(&s);
        assert_true(worst_after(&s, s.when[cases[i].reports] + cases[i].later) < cases[i].bound);
        for (size_t k = 0; s.warm_up > 0 && k < s.count; k++)
            assert_true(s.told[k] < 1.01 * (s.now - 1000 - s.warm_up));
    }
}

/* The first report is not counted, and so few say nothing, however long they took. */
TEST(nothing_is_told_too_early)
{
    static const struct {
        double step;
        size_t first; /* report with a time */
    } cases[] = {{0.5, 6}, {5, 4}};
    for (size_t i = 0; i < 2; i++) {
        struct simulation s = {.step = cases[i].step, .evaluation = cases[i].step};
        simulate(&s);
        for (size_t k = 0; k < cases[i].first; k++)
            assert_true(s.told[k] == TIME_UNKNOWN);
        assert_true(s.told[cases[i].first] > 0);
    }
}

/* A pause of a minute, as of a machine that sleeps, is no reason to expect more of them. */
TEST(one_pause_is_one_pause)
{
    struct simulation s = {.step = 0.2, .evaluation = 0.2, .pause_at = 250, .pause = 60};
    simulate(&s);
    for (size_t i = 1; i < s.count; i++)
        if (s.told[i - 1] > 0 && s.told[i] > 0)
            assert_true(s.told[i] < s.told[i - 1] + 3);
}

TEST(kinds_that_were_not_seen_are_not_guessed)
{
    struct time_left left = {0};
    struct progress_work work = {.total = {10, 11}};
    for (size_t i = 0; i < 10; i++) {
        time_left_note(&left, (double)i, &work);
        assert_true(time_left_seconds(&left, &work) == TIME_UNKNOWN);
        work.done[0]++;
    }
    work.done[1] = 1; /* of which the first took a minute */
    time_left_note(&left, 70, &work);
    assert_true(time_left_seconds(&left, &work) == TIME_UNKNOWN);
    work.done[1] = work.total[1] = 0;
    work.done[0] = 10;
    assert_true(time_left_seconds(&left, &work) == TIME_UNKNOWN); /* nothing is left */
    assert_true(work_share(&work) == 1);
}

/* What was found in a cache does not make the rest fast; other totals are other work. */
TEST(leaps_and_other_work)
{
    struct time_left left = {0};
    struct progress_work work = {.total = {1000}};
    for (size_t i = 0; i <= 20; i++) {
        work.done[0] = (double)i;
        time_left_note(&left, (double)i, &work);
    }
    work.done[0] += 500;
    time_left_note(&left, 20.001, &work);
    assert_true(time_left_seconds(&left, &work) > 0);
    for (size_t i = 1; i <= 100; i++) {
        work.done[0]++;
        time_left_note(&left, 20 + (double)i, &work);
    }
    assert_true(fabs(time_left_seconds(&left, &work) - 380) < 40);
    work.total[0] = 999;
    time_left_note(&left, 121, &work);
    assert_true(time_left_seconds(&left, &work) == TIME_UNKNOWN);
}

/* --- Runs of a sweep --- */

TEST(runs_never_go_back)
{
    struct tally tally;
    tally_open(&tally, 4);
    tally_expect(&tally, 0, 10, false);
    tally_expect(&tally, 1, 10, true);
    tally_expect(&tally, 3, 20, false); /* number 2 is finished */
    assert_true(tally.work.total[0] == 40 && tally.work.done[0] == 0);
    tally_hear(&tally, 0, 0.5);
    assert_true(tally.work.done[0] == 5);
    tally_hear(&tally, 0, 0.1); /* its process has ended, another goes on with it */
    assert_true(tally.work.done[0] == 5);
    tally_hear(&tally, 1, 0.8); /* resumed: 0.8 was there before */
    assert_true(tally.work.done[0] == 5);
    tally_hear(&tally, 1, 0.9);
    assert_true(fabs(tally.work.done[0] - 10) < 1e-9);
    tally_end(&tally, 0);
    tally_end(&tally, 0);
    tally_hear(&tally, 0, 0.2);
    assert_true(fabs(tally.work.done[0] - 15) < 1e-9);
    tally_end(&tally, 1);
    tally_end(&tally, 3);
    assert_true(fabs(work_share(&tally.work) - 1) < 1e-9);
    tally_close(&tally);
}
