/* Status codes and error messages, and the sink of warnings.
 *
 *     status result = file_read(path, &bytes, error);
 *     if (result != OK)
 *         return result;                       // the message is already in error
 *     ...
 *     return error_set(error, ERROR_FORMAT, "%s: expected 4 dimensions, found %d", path, rank);
 *
 * Every function that can fail returns a status and fills the struct error passed last. A message says what, where,
 * what was expected, what was found and, where it helps, what to do next; it has no trailing newline.
 *
 *     log_warn(log, "%s: prompt %zu has %zu tokens, cut to %zu", path, line, found, context);
 *
 * Nothing below harness/ prints; the owner of the log decides what to do with messages.
 */
#pragma once

#include "core/scope.h"

typedef enum status {
    OK = 0,
    ERROR_ARGUMENT, /* a value of the caller or user is out of range or unknown */
    ERROR_IO,       /* the operating system refused: missing file, full disk, permissions */
    ERROR_FORMAT,   /* a file does not conform to its format */
    ERROR_MEMORY,   /* the machine has no more memory or file descriptors */
    ERROR_DEVICE,   /* a GPU or its driver refused, or a processor lacks a unit */
    ERROR_BUSY,     /* another process holds the resource */
    ERROR_STOPPED   /* the user asked to stop; nothing is wrong */
} status;

struct error {
    status code;
    char message[1024];
};

#if defined(__GNUC__)
#define PRINTF_LIKE(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#else
#define PRINTF_LIKE(format_index, first_index)
#endif

/* Fills error (which may be NULL) and returns code, so that a failure is one statement. */
status error_set(struct error *error, status code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "context: " in front of the message that error already holds; returns its code. For callers that know more
 * about the context than the callee. */
status error_context(struct error *error, const char *format, ...) PRINTF_LIKE(2, 3);

/* Like error_set, with ": " and the text of errno value number at the end; ERROR_IO, or ERROR_MEMORY where number
 * means that. */
status error_errno(struct error *error, int number, const char *format, ...) PRINTF_LIKE(3, 4);

/* A static analyser sees one file at a time and would follow paths on which a failure is treated as OK. */
#ifdef __clang_analyzer__
#define error_set(error, code, ...) (error_set(error, code, __VA_ARGS__), (code))
#define error_errno(error, number, ...) (error_errno(error, number, __VA_ARGS__), ERROR_IO)
#endif

/* Passes a failure on to the caller. */
#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        status try_status_ = (expression);                                                                             \
        if (try_status_ != OK)                                                                                         \
            return try_status_;                                                                                        \
    } while (0)

/* Runs the next step unless an earlier one failed; for functions that undo something at the end, whatever happened.
 *
 *     status result = first(&thing, error);
 *     NEXT(result, second(&thing, error));
 *     thing_close(&thing);
 *     return result;
 */
#define NEXT(result, expression)                                                                                       \
    do {                                                                                                               \
        if ((result) == OK)                                                                                            \
            (result) = (expression);                                                                                   \
    } while (0)

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
