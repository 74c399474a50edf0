/* The sink of warnings and notes. Nothing below harness/ prints; the owner of the log decides what to do with messages.
 *
 *     log_warn(log, "%s: prompt %zu has %zu tokens, cut to %zu", path, line, found, context);
 */
#pragma once

#include "core/status.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN };

struct log {
    void (*write)(void *context, enum log_level level, const char *message); /* NULL: silence */
    void *context;
    enum log_level least; /* messages below are dropped */
};

/* log may be NULL: silence. */
void log_debug(const struct log *log, const char *format, ...) PRINTF_LIKE(2, 3);
void log_info(const struct log *log, const char *format, ...) PRINTF_LIKE(2, 3);
void log_warn(const struct log *log, const char *format, ...) PRINTF_LIKE(2, 3);
