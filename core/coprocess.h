/* A program that runs beside this one and talks with it in JSON, an object a line, on its standard input and output.
 *
 *     struct coprocess *program;
 *     TRY(coprocess_start(&program, &(struct coprocess_settings){.name = "mine", .arguments = arguments, .log = "run.log", .stop = stop}, error));
 *     json_t *answer;
 *     TRY(coprocess_send(program, json_pack("{s:s}", "type", "begin"), error));
 *     TRY(coprocess_receive(program, 60, &answer, error));
 *     coprocess_text(answer, "type") …
 *     json_decref(answer);
 *     TRY(coprocess_end(program, 10, error));                    // it exits with 0 within ten seconds
 *     coprocess_close(program);                                  // also after a failure: kills what still runs
 *
 * Its standard error goes to the log. An error names the program, what was expected, and the last line of the log. It gets SIGKILL when this program ends, however that ends.
 */
#pragma once

#include <jansson.h>

#include "core/option.h"
#include "core/status.h"
#include "core/threads.h"

#define COPROCESS_LINE ((size_t)64 << 20) /* bytes of a line at most */

/* The keys of an option table whose owner runs a program; free keys stand below "options". */
#define COPROCESS_OPTIONS(timeout_, example_)                                                                          \
    OPTION(LIST, "command", "",                                                                                        \
           "program and its arguments, without a shell; from a suite's file it needs --allow-commands"),               \
        OPTION(FILES, "files", "", "files of the program, whose contents are part of a run's identity"),               \
        OPTION_NUMBER(REAL, "timeout", 0, 1e9, timeout_,                                                               \
                      "seconds without a line after which the program is given up; 0: never", .incidental = "*"),      \
        OPTION(TEXT, "options", NULL, "keys of the program itself, of any name: " example_)

struct coprocess_settings {
    const char *name;             /* for messages */
    const char *const *arguments; /* the program, looked up in PATH, and its arguments; NULL at the end */
    const char *log;              /* file that standard error is added to, in a folder that is there */
    const struct stop *stop;
};

struct coprocess;

/* The settings' strings are borrowed during the call, the stop until coprocess_close. */
status coprocess_start(struct coprocess **coprocess, const struct coprocess_settings *settings, struct error *error);

/* Releases the message; NULL, which json_pack gives for a text that is not UTF-8, is ERROR_FORMAT. */
status coprocess_send(struct coprocess *coprocess, json_t *message, struct error *error);

/* The next line, an object with a text "type", which the caller releases. One of type "error" is an error with its "message".
 * ERROR_STOPPED as soon as a stop is requested, unless coprocess_finish was called; then the
 * next line is still to come. ERROR_IO where there is none within so many seconds (0: any time), or the program has ended;
 * ERROR_FORMAT for a line that is too long or something else. */
status coprocess_receive(struct coprocess *coprocess, double seconds, json_t **message, struct error *error);

/* A text of a message; "": it has none of this key. */
const char *coprocess_text(const json_t *message, const char *key);

/* The words of the option "command" as one text, which the caller frees. */
char *coprocess_command(const struct options *options);

/* Options "options.KEY" of a table as an object {KEY: value}; a value that reads as a number or a truth value is one. */
json_t *coprocess_options(const struct options *options);

/* From now on stop requests are ignored. */
void coprocess_finish(struct coprocess *coprocess);

/* Closes its standard input and waits until it has exited with 0. */
status coprocess_end(struct coprocess *coprocess, double seconds, struct error *error);
/* Bytes of the most memory that the program has had so far; 0: there is none, or it has ended. */
uint64_t coprocess_peak(const struct coprocess *coprocess);

void coprocess_close(struct coprocess *coprocess); /* NULL is allowed */

/* Appends the last line of its log to a message about it: ‹MESSAGE; its last line was: LINE›. Returns the error's code. */
status coprocess_explain(const struct coprocess *coprocess, struct error *error);
