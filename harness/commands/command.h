/* What a subcommand is: a constant table beside its function, and one line in commands.c.
 *
 *     static const struct option options[] = {
 *         {.name = "format", .type = OPTION_CHOICE, .choices = "table|csv", .fallback = "table", .help = "how to print"}, {0}};
 *     static status run(const struct command_call *call, struct error *error) { … call->arguments[0] … }
 *     const struct command command_query = {.name = "query", .arguments = "WHAT DATABASE", .summary = "print results",
 *         .example = "mtil query matrix results.db\n", .options = options, .least = 2, .most = 2, .run = run};
 *
 * Options are those of core/option.h: --format csv is checked like a suite's key, and --help is made from the table. Every command
 * has --help, --quiet and --verbose besides its own.
 */
#ifndef MTIL_HARNESS_COMMANDS_COMMAND_H
#define MTIL_HARNESS_COMMANDS_COMMAND_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/log.h"
#include "core/option.h"
#include "core/status.h"
#include "harness/progress.h"
#include "harness/stop.h"

struct command_call {
    const struct options *options;
    const char *const *arguments; /* what is left when options are taken out, in order */
    size_t argument_count;        /* within [least, most] */
    FILE *out;                    /* results; messages go to log */
    const struct log *log;
    struct progress *progress;
    const struct stop *stop;
};

struct command {
    const char *name;
    const char *arguments; /* as the usage line shows them: "SUITE [key=value…]" */
    const char *summary;   /* one line, lower case, no full stop */
    const char *details;   /* a paragraph or more for --help, NULL: none */
    const char *example;   /* whole lines for the end of --help */
    const struct option *options; /* NULL: none */
    size_t least, most;           /* arguments; most SIZE_MAX: any number */
    status (*run)(const struct command_call *call, struct error *error);
};

/* The table of commands.c, in the order that --help shows; ends with NULL. */
extern const struct command *const commands[];

/* What a call's command line came to. */
enum command_outcome { COMMAND_RUN, COMMAND_HELP };

/* Reads the options and arguments that follow the command's name (argv[0] is "mtil query"; argv is reordered). With COMMAND_HELP,
 * --help was printed to out and there is nothing to run. The caller destroys *values. */
status command_parse(const struct command *command, int argc, char **argv, FILE *out, enum command_outcome *outcome,
                     struct options **values, struct command_call *call, struct error *error);

#endif
