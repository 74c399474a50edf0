#include "core/status.h"

#include <stdarg.h>
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

status error_context(struct error *error, const char *format, ...)
{
    if (error == NULL)
        return ERROR_ARGUMENT;
    struct error inner = *error;
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    if (used >= 0 && (size_t)used < sizeof error->message)
        snprintf(error->message + used, sizeof error->message - (size_t)used, ": %s", inner.message);
    return error->code;
}

status error_errno(struct error *error, int number, const char *format, ...)
{
    if (error == NULL)
        return ERROR_IO;
    va_list arguments;
    va_start(arguments, format);
    error->code = ERROR_IO;
    int used = vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    char text[128];
    if (used >= 0 && (size_t)used < sizeof error->message)
        snprintf(error->message + used, sizeof error->message - (size_t)used, ": %s",
                 strerror_r(number, text, sizeof text));
    return ERROR_IO;
}

const char *status_name(status code)
{
    switch (code) {
    case OK:
        return "ok";
    case ERROR_ARGUMENT:
        return "argument";
    case ERROR_IO:
        return "io";
    case ERROR_FORMAT:
        return "format";
    case ERROR_MEMORY:
        return "memory";
    case ERROR_DEVICE:
        return "device";
    case ERROR_BUSY:
        return "busy";
    case ERROR_STOPPED:
        return "stopped";
    }
    return "unknown";
}
