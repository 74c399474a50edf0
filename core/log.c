#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

static void write_message(const struct log *log, enum log_level level, const char *format, va_list arguments)
{
    if (log == NULL || log->write == NULL || level < log->least)
        return;
    char message[1024];
    vsnprintf(message, sizeof message, format, arguments);
    log->write(log->context, level, message);
}

#define DEFINE_LEVEL(function, level)                                                                                  \
    void function(const struct log *log, const char *format, ...)                                                      \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, format);                                                                                   \
        write_message(log, level, format, arguments);                                                                  \
        va_end(arguments);                                                                                             \
    }

DEFINE_LEVEL(log_debug, LOG_DEBUG)
DEFINE_LEVEL(log_info, LOG_INFO)
DEFINE_LEVEL(log_warn, LOG_WARN)
