/* A run of this program as a child process: its output goes to a log, and it ends when its parent does. child_run
 * runs another program to its end.
 *
 *     struct child child;
 *     TRY(child_start(&child, &arguments, "logs/3.log", error));             // run mini run.seeds=3
 *     struct child_end end;
 *     while (!child_ended(&child, &end))
 *         … child_signal(&child, SIGINT) …
 *     end.exit_status, end.message …
 *
 *     struct text output = {0};
 *     TRY(child_run((const char *[]){"sbatch", "--parsable", "batch.sh", NULL}, &output, error));
 *
 * When the parent dies, the child gets SIGTERM.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "core/process.h"
#include "core/status.h"
#include "core/text.h"
#include "datasets/formats/strings.h"

struct child {
    pid_t id;
    const char *log; /* borrowed */
    off_t begin;     /* where this child's part of the log begins */
};

struct child_end {
    int exit_status; /* −1: ended by a signal */
    int signal;
    char message[LOG_TAIL_MESSAGE]; /* the error it reported, or the last line it printed; "": none */
};

/* Starts this program with one or more arguments, appending to log in an existing folder; log is borrowed until the child
 * has ended. */
status child_start(struct child *child, const struct strings *arguments, const char *log, struct error *error);

/* Does not wait. True once, when the child has ended; it is released then. */
bool child_ended(const struct child *child, struct child_end *end);

void child_signal(const struct child *child, int number);

/* Runs another program to its end. Appends standard output and standard error to output, interleaved as they arrive. ERROR_IO,
 * with the last line of output, when the program is not found in PATH or does not exit with 0. */
status child_run(const char *const *arguments, struct text *output, struct error *error);
