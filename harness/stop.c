#include "harness/stop.h"

#include <signal.h>
#include <stddef.h>

/* A signal handler is given nothing but a number, so this is the program's one variable that outlives its functions. */
static struct stop *_Atomic raised_by_signals;

static void raise_stop(int number)
{
    struct stop *stop = atomic_load(&raised_by_signals);
    if (stop != NULL)
        atomic_store(&stop->signal, number);
}

bool stop_requested(const struct stop *stop)
{
    return stop != NULL && atomic_load_explicit(&stop->signal, memory_order_relaxed) != 0;
}

/* oneDNN's f32 kernels let the stack pointer point into their packing buffer while the inner dimension is long: a
 * handler on that stack would write its frame into the heap. Workers have signals blocked (core/threads.c). */
static void use_own_stack(void)
{
    static char stack[64 << 10];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
}

void stop_on_signals(struct stop *stop)
{
    atomic_store(&raised_by_signals, stop);
    use_own_stack();
    /* SA_RESETHAND: a second signal of the kind finds the default action and ends the program. */
    struct sigaction action = {.sa_handler = raise_stop, .sa_flags = SA_RESTART | SA_ONSTACK | (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
