#include "core/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#undef error_set
#undef error_errno

status error_set(struct error *error, status code, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        error->code = code;
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return code;
}

/* The message, then ": " and `end`. */
static void write_with(struct error *error, const char *end, const char *format, va_list arguments)
{
    int used = vsnprintf(error->message, sizeof error->message, format, arguments);
    if (used >= 0 && (size_t)used < sizeof error->message)
        snprintf(error->message + used, sizeof error->message - (size_t)used, ": %s", end);
}

status error_context(struct error *error, const char *format, ...)
{
    if (error == NULL)
        return ERROR_ARGUMENT;
    struct error inner = *error;
    va_list arguments;
    va_start(arguments, format);
    write_with(error, inner.message, format, arguments);
    va_end(arguments);
    return error->code;
}

status error_errno(struct error *error, int number, const char *format, ...)
{
    bool shortage = number == ENOMEM || number == EMFILE || number == ENFILE;
    status code = shortage ? ERROR_MEMORY : ERROR_IO;
    if (error == NULL)
        return code;
    char text[128];
    va_list arguments;
    error->code = code;
    va_start(arguments, format);
    write_with(error, strerror_r(number, text, sizeof text), format, arguments);
    va_end(arguments);
    return code;
}

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
