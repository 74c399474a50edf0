#include "harness/terminal/stop.h"

#include <signal.h>
#include <unistd.h>

enum { GRACE_SECONDS = 1 };

/* A signal handler gets nothing but a number, so this is the only global variable of the program. */
static struct stop *_Atomic raised_by_signals;

/* Ends a program that does not poll the request. */
static void end_by_force(int alarm_number)
{
    static const char message[] = "mtil: stopped\n";
    struct stop *stop = atomic_load(&raised_by_signals);
    if (atomic_load(&stop->held)) {
        alarm(GRACE_SECONDS);
        return;
    }
    int number = atomic_load(&stop->signal);
    ssize_t written = number == SIGPIPE ? 0 : write(STDERR_FILENO, message, sizeof message - 1);
    (void)written;
    _exit(EXIT_SIGNAL + number);
}

static void request_stop(int number)
{
    struct stop *stop = atomic_load(&raised_by_signals);
    struct sigaction action = {.sa_handler = end_by_force, .sa_flags = SA_RESTART | SA_ONSTACK};
    int none = 0;
    if (!atomic_compare_exchange_strong(&stop->signal, &none, number)) /* the first one counts */
        return;
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    alarm(GRACE_SECONDS);
}

/* oneDNN's f32 kernels point the stack pointer into their packing buffer when the inner dimension is long; a handler
 * on that stack would write its frame into the heap. Workers block signals (core/threads.c). */
static void use_own_stack(void)
{
    static char stack[64 << 10];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
}

static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static void listen_to(int number, int flags)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = SA_RESTART | SA_ONSTACK | flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void stop_on_signals(struct stop *stop)
{
    atomic_store(&raised_by_signals, stop);
    use_own_stack();
    listen_to(SIGINT, (int)SA_RESETHAND); /* restores the default action for the second one */
    listen_to(SIGTERM, 0);
    listen_to(SIGXCPU, 0);
    listen_to(SIGPIPE, 0);
    if (!is_ignored(SIGHUP))
        listen_to(SIGHUP, 0);
    signal(SIGXFSZ, SIG_IGN);
}

void stop_hold(struct stop *stop)
{
    if (stop != NULL)
        atomic_store(&stop->held, true);
}

void stop_release(struct stop *stop)
{
    if (stop != NULL)
        atomic_store(&stop->held, false);
}
