/* A subcommand: a constant table beside its function, and one line in commands.c.
 *
 *     static const struct option options[] = {
 *         OPTION_NUMBER(INTEGER, "limit", 1, 1e6, NULL, "rows to print"), {0}};
 *     static status run(const struct command_call *call, struct error *error) { … call->arguments[0] … }
 *     const struct command command_query = {.name = "query", .arguments = "WHAT DATABASE", .summary = "print results",
 *         .example = "mtil query matrix results.db\n", .options = options, .least = 2, .most = 2, .run = run};
 *
 * A command with subcommands is a table of them in commands.c; each is a constant struct command in a file of its own.
 * Options are declared as in core/option.h: --limit 5 is checked like a suite's key, and --help is printed from the
 * table. Every command also has --help, --quiet and --verbose.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/option.h"
#include "core/status.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/stop.h"

struct command_call {
    const struct options *options;
    const char *const *arguments; /* arguments that are not options, in order */
    size_t argument_count;        /* within [least, most] */
    FILE *out;                    /* results; messages go to log */
    bool verbose;
    const struct log *log;
    struct progress *progress;
    struct stop *stop;
};

struct command {
    const char *name;             /* "query"; a subcommand's has all words: "data mini" */
    const char *arguments;        /* as the usage line shows them: "SUITE [key=value…]" */
    const char *summary;          /* one line, lower case, no full stop */
    const char *details;          /* whole lines for --help, NULL: none */
    const char *example;          /* whole lines for the end of --help */
    const struct option *options; /* NULL: none */
    size_t least, most;           /* numbers of arguments; most SIZE_MAX: no limit */
    status (*run)(const struct command_call *call, struct error *error);
    const struct command *const *subcommands; /* ends with NULL; NULL: it has none */
};

/* The table of commands.c, in the order that --help shows; ends with NULL. */
extern const struct command *const commands[];

/* The options of every command besides its own: --quiet, --verbose and --help, or their first letters. */
extern const struct option command_common_options[];

#define THREADS_OPTION OPTION_NUMBER(INTEGER, "threads", 0, 1024, "0", "number of threads; 0: one per core")

/* A parsed command line. */
struct command_line {
    bool help, quiet, verbose;
    struct options *options;
    const char *const *arguments; /* a part of argv */
    size_t argument_count;
};

/* Parses the words after the command's name, which argv[0] stands for, and reorders argv. Without --help the number of
 * arguments is within bounds. The caller frees line. */
status command_parse(const struct command *command, int argc, char **argv, struct command_line *line,
                     struct error *error);
void command_line_free(struct command_line *line);

/* Prints usage, options and example of a command. */
void command_help(const struct command *command, FILE *out);

/* The command named by the first `used` of count words ("data", "mini"), or an error that lists the commands. */
status command_find(const char *const *words, size_t count, const struct command **command, size_t *used,
                    struct error *error);
