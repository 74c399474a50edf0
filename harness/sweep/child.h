/* A run of this program as a process of its own: what it prints goes to a log, and it ends when its parent does.
 *
 *     struct child child;
 *     TRY(child_start(&child, (const char *[]){"run", "mini", "run.seeds=3", NULL}, "logs/3.log", error));
 *     struct child_end end;
 *     while (!child_ended(&child, &end))
 *         … child_signal(&child, SIGINT) …
 *     end.exit_status, end.message …
 *
 * A child is in a process group of its own, so that Ctrl-C on a terminal reaches the parent alone, which passes it on once:
 * a second signal would end the child without saving. When the parent dies, the child is asked to stop (SIGTERM).
 */
#ifndef MTIL_HARNESS_SWEEP_CHILD_H
#define MTIL_HARNESS_SWEEP_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/status.h"
#include "harness/sweep/log_tail.h"

struct child {
    pid_t id;
    const char *log; /* borrowed */
    off_t begin;     /* of this child's part of the log */
};

struct child_end {
    int exit_status; /* −1: ended by a signal */
    int signal;
    char message[LOG_TAIL_MESSAGE]; /* the error it told, or the last it said; "" when it said nothing */
};

/* Starts this program with the arguments (ended by NULL); log, in a folder that exists, is appended to and borrowed until
 * the child has ended. */
status child_start(struct child *child, const char *const *arguments, const char *log, struct error *error);

/* Does not wait. True once, when the child has ended; it is gone then. */
bool child_ended(const struct child *child, struct child_end *end);

void child_signal(const struct child *child, int number);

#endif
