/* When experts are merged within a task. */
#include "tests/test.h"
#include <math.h>

#include "adapters/schedule/schedule.h"

/* The iterations of a task of n after which a schedule without a look at the loss merges. */
static size_t due_iterations(const struct merge_schedule *schedule, size_t n, size_t every, size_t *due)
{
    size_t count = 0;
    for (size_t i = 1; schedule->due != NULL && i <= n; i++)
        if (schedule->due(&(struct schedule_call){.iteration = i, .iterations = n, .every = every}))
            due[count++] = i;
    return count;
}

static void expect_due(const struct merge_schedule *schedule, size_t n, size_t every, const size_t *expected,
                       size_t count)
{
    size_t due[1024];
    assert_int_equal(due_iterations(schedule, n, every, due), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(due[i], expected[i]);
}

TEST(fixed_schedules)
{
    expect_due(&schedule_every, 10, 3, (const size_t[]){3, 6, 9}, 3);
    expect_due(&schedule_once, 10, 3, (const size_t[]){3}, 1);
    expect_due(&schedule_once, 10, 11, NULL, 0);
    expect_due(&schedule_end_of_task, 10, 3, NULL, 0);
    assert_true(schedule_end_of_task.after_task);
}

/* 10 merges in 1000 iterations: the k-th when 10 · F(i / 1000) reaches k, F the triangle's integral. */
TEST(warmup_decay_is_densest_in_the_middle)
{
    size_t due[1024], every[1024], count = due_iterations(&schedule_warmup_decay, 1000, 100, due);
    assert_int_equal(count, 10);
    for (size_t k = 1; k <= 10; k++) {
        double part = (double)k / 10, x = part <= 0.5 ? sqrt(part / 2) : 1 - sqrt((1 - part) / 2);
        assert_true(fabs((double)due[k - 1] - 1000 * x) <= 1);
    }
    assert_int_equal(due[9], 1000);
    assert_int_equal(due_iterations(&schedule_every, 1000, 100, every), 10);
    assert_true(due[0] > every[0] && due[5] - due[4] < 60 && due[9] - due[8] > 200);
    assert_int_equal(due_iterations(&schedule_warmup_decay, 99, 100, due), 0); /* as with every */
    assert_int_equal(due_iterations(&schedule_warmup_decay, 6, 2, due), 3);
    size_t many = due_iterations(&schedule_warmup_decay, 100, 1, due);
    assert_in_range(many, 50, 100); /* several at once are one */
}

/* Mean losses of one window after another, and whether a merge follows. */
TEST(plateau_waits_for_a_loss_that_does_not_fall)
{
    static const struct {
        double loss;
        bool due;
    } windows[] = {{4, false},           {3, false},   {2.98, true}, {2.9502, false}, {2.95, true}, {3.5, true},
                   {(double)NAN, false}, {3.4, false}, {3.4, true},  {0, false},      {0, false}};
    struct schedule_state memory = {0};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        struct schedule_call call = {.iteration = (i + 1) * 5,
                                     .iterations = 1000,
                                     .every = 5,
                                     .least_fall = 0.01,
                                     .loss = windows[i].loss,
                                     .state = &memory};
        if (schedule_plateau.due(&call) != windows[i].due)
            fail_msg("window %zu", i);
    }
}
