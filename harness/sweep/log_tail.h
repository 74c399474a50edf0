/* The end of a run's log: its last line and its last error.
 *
 *     char message[LOG_TAIL_MESSAGE];
 *     log_tail_error("logs/3.log", 0, message);        // "expected 4 tensors, found 3"
 */
#pragma once

#include <sys/types.h>

enum { LOG_TAIL_MESSAGE = 600 };

/* The last error after the offset `begin`, without "mtil: error: ", or else the last line; "" for an empty log.
 * Searches the last 8 KiB. */
void log_tail_error(const char *path, off_t begin, char message[LOG_TAIL_MESSAGE]);

/* The last line that is not empty. */
void log_tail_line(const char *path, off_t begin, char message[LOG_TAIL_MESSAGE]);

/* The last line of a text that is not empty and begins so; NULL: there is none. */
const char *log_tail_find(const char *text, const char *beginning);
