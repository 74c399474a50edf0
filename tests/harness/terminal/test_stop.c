/* Requests to stop by signals: which there are, what a second one does, and what becomes of who does not listen. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/terminal/stop.h"
#include "tests/test.h"

static void hear_every_signal(struct stop *stop)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGPIPE};
    stop_hold(stop);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        atomic_store(&stop->signal, 0);
        if (stop_requested(stop) || raise(signals[i]) != 0 || !stop_requested(stop) ||
            atomic_load(&stop->signal) != signals[i])
            _exit(1);
    }
}

/* `timeout` and closing terminals send theirs twice. */
static void hear_the_first_of_two(struct stop *stop)
{
    stop_hold(stop);
    raise(SIGTERM);
    raise(SIGHUP);
    raise(SIGTERM);
    _exit(atomic_load(&stop->signal));
}

static void interrupt_twice(struct stop *stop)
{
    stop_hold(stop);
    raise(SIGINT);
    raise(SIGINT);
}

static void never_look(struct stop *stop)
{
    close(STDERR_FILENO); /* its message is not part of the tests' output */
    raise(SIGHUP);
    for (;;)
        pause();
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

static void ignore_hangups(struct stop *stop)
{
    signal(SIGHUP, SIG_IGN);
    stop_on_signals(stop);
    raise(SIGHUP);
    _exit(stop_requested(stop) || stop_requested(NULL));
}

/* Each in a process of its own. */
TEST(signals_ask_and_end)
{
    static const struct {
        void (*child)(struct stop *stop);
        int exit_status, signal;
    } cases[] = {{hear_every_signal, 0, 0},     {hear_the_first_of_two, SIGTERM, 0}, {interrupt_twice, 0, SIGINT},
                 {never_look, 128 + SIGHUP, 0}, {hold_for_a_while, 128 + SIGINT, 0}, {ignore_hangups, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct stop stop;
        int ended;
        pid_t id = fork();
        assert_true(id >= 0);
        if (id == 0) {
            alarm(60);
            stop_on_signals(&stop);
            cases[i].child(&stop);
            _exit(0);
        }
        assert_int_equal(waitpid(id, &ended, 0), id);
        assert_int_equal(WIFSIGNALED(ended) ? WTERMSIG(ended) : 0, cases[i].signal);
        assert_int_equal(WEXITSTATUS(ended), cases[i].exit_status);
    }
}
