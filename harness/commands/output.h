/* Tables as a command's answer: the --format option and what obeys it.
 *
 *     static const struct option options[] = {OUTPUT_FORMAT_OPTION, {0}};
 *     TRY(output_table(call, &table, error));          // to call->out, in the form that was asked for
 */
#ifndef MTIL_HARNESS_COMMANDS_OUTPUT_H
#define MTIL_HARNESS_COMMANDS_OUTPUT_H

#include "harness/commands/command.h"
#include "results/table.h"

#define OUTPUT_FORMAT_OPTION                                                                                           \
    {                                                                                                                  \
        .name = "format", .type = OPTION_CHOICE, .choices = "table|csv|json|markdown|latex", .fallback = "table",      \
        .help = "form of the answer"                                                                                   \
    }

/* Words with names in them, which may come from anywhere: shown, and not obeyed by a terminal. */
void output_words(const struct command_call *call, const char *words);

/* Colour only where a terminal shows it and NO_COLOR (no-color.org) is not set to something. */
status output_table(const struct command_call *call, const struct table *table, struct error *error);
status output_table_as(const struct command_call *call, const struct table *table, enum table_format format,
                       struct error *error);

#endif
