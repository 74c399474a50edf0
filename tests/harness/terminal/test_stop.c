/* Requests to stop by signals: which there are, what a second one does, and what becomes of who does not listen. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/terminal/stop.h"
#include "tests/test.h"

TEST(stop_is_raised_and_asked_for)
{
    struct stop stop = {0};
    assert_false(stop_requested(NULL));
    assert_false(stop_requested(&stop));
    atomic_store(&stop.signal, 15);
    assert_true(stop_requested(&stop));
}

/* Runs child in a process of its own, and returns how that ended. */
static int outcome_of(void (*child)(struct stop *stop))
{
    static struct stop stop;
    int ended;
    pid_t id = fork();
    assert_true(id >= 0);
    if (id == 0) {
        alarm(60);
        stop_on_signals(&stop);
        child(&stop);
        _exit(0);
    }
    assert_int_equal(waitpid(id, &ended, 0), id);
    return ended;
}

static void expect_exit(int ended, int exit_status)
{
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), exit_status);
}

static void hear_every_signal(struct stop *stop)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGPIPE};
    stop_hold(stop);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        atomic_store(&stop->signal, 0);
        raise(signals[i]);
        if (atomic_load(&stop->signal) != signals[i])
            _exit(1);
    }
}

TEST(every_signal_is_heard)
{
    expect_exit(outcome_of(hear_every_signal), 0);
}

static void hear_the_first_of_two(struct stop *stop)
{
    stop_hold(stop);
    raise(SIGTERM);
    raise(SIGHUP);
    raise(SIGTERM);
    _exit(atomic_load(&stop->signal));
}

/* `timeout` and closing terminals send theirs twice. */
TEST(the_second_one_is_no_more_than_the_first)
{
    expect_exit(outcome_of(hear_the_first_of_two), SIGTERM);
}

static void interrupt_twice(struct stop *stop)
{
    stop_hold(stop);
    raise(SIGINT);
    raise(SIGINT);
}

TEST(a_second_interrupt_ends_at_once)
{
    int ended = outcome_of(interrupt_twice);
    assert_true(WIFSIGNALED(ended));
    assert_int_equal(WTERMSIG(ended), SIGINT);
}

static void never_look(struct stop *stop)
{
    (void)stop;
    close(STDERR_FILENO); /* its message is not part of the tests' output */
    raise(SIGHUP);
    for (;;)
        pause();
}

TEST(who_does_not_look_is_ended)
{
    expect_exit(outcome_of(never_look), 128 + SIGHUP);
}

/* Alarms come while it holds, and one that comes afterwards ends it. */
static void hold_for_a_while(struct stop *stop)
{
    close(STDERR_FILENO);
    stop_hold(stop);
    raise(SIGINT);
    for (int alarms = 0; alarms < 2; alarms++)
        pause();
    stop_release(stop);
    pause();
    _exit(0);
}

TEST(who_holds_is_not_ended)
{
    expect_exit(outcome_of(hold_for_a_while), 128 + SIGINT);
}

static void ignore_hangups(struct stop *stop)
{
    signal(SIGHUP, SIG_IGN);
    stop_on_signals(stop);
    raise(SIGHUP);
    _exit(stop_requested(stop));
}

TEST(an_ignored_hangup_stays_ignored)
{
    expect_exit(outcome_of(ignore_hangups), 0);
}
