/* Tables as a command's answer, in the format of --format.
 *
 *     static const struct option options[] = {OUTPUT_FORMAT_OPTION, {0}};
 *     TRY(output_table(call, &table, error));          // to call->out, in the requested form
 */
#pragma once

#include "harness/commands/command.h"
#include "results/table.h"

#define OUTPUT_FORMAT_OPTION                                                                                           \
    {                                                                                                                  \
        .name = "format", .type = OPTION_CHOICE, .choices = "table|csv|json|markdown|latex", .fallback = "table",      \
        .help = "format of the output"                                                                                 \
    }

/* Prints words with names from outside; control characters are made visible. */
void output_words(const struct command_call *call, const char *words);

/* Colour only on a terminal and if NO_COLOR (no-color.org) is unset or empty. */
status output_table(const struct command_call *call, const struct table *table, struct error *error);
status output_table_as(const struct command_call *call, const struct table *table, enum table_format format,
                       struct error *error);
