/* Other programs: their start, and the last words of their logs.
 *
 *     pid_t id;
 *     TRY(process_start(&(struct process_start){.arguments = arguments, .input = null, .output = log, .errors = log, .at_parents_end = SIGTERM},
 *                       &id, error));
 *
 *     char message[LOG_TAIL_MESSAGE];
 *     log_tail_error("logs/3.log", 0, message);        // "expected 4 tensors, found 3"
 *
 * A process gets its own process group, so that Ctrl-C on a terminal reaches only its parent, which passes it on once: a
 * second signal would end the child without saving.
 */
#pragma once

#include <sys/types.h>

#include "core/status.h"

struct process_start {
    const char *program;       /* path of what is executed; NULL: arguments[0], which is looked up in PATH */
    char *const *arguments;    /* its name and arguments, NULL at the end */
    int input, output, errors; /* become its standard streams; the caller's stay open */
    int at_parents_end;        /* the signal that it gets when the thread that started it ends */
};

/* ERROR_IO where there is no such program. */
status process_start(const struct process_start *start, pid_t *id, struct error *error);

enum { LOG_TAIL_MESSAGE = 600 };

/* The last error after the offset `begin`, without "mtil: error: ", or else the last line; "" for an empty log.
 * Searches the last 8 KiB. */
void log_tail_error(const char *path, off_t begin, char message[LOG_TAIL_MESSAGE]);

/* The last line that is not empty. */
void log_tail_line(const char *path, off_t begin, char message[LOG_TAIL_MESSAGE]);

/* The last line of a text that is not empty and has this beginning; NULL: there is none. */
const char *text_last_line(const char *text, const char *beginning);
