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

/* Colour only on a terminal other than TERM=dumb and if NO_COLOR (no-color.org) is unset or empty. */
status output_table(const struct command_call *call, const struct table *table, struct error *error);
void output_table_as(const struct command_call *call, const struct table *table, enum table_format format);

/* A long table, printed while it grows, so that a million rows take no more memory than some thousands. CSV and JSON
 * are printed row by row, the other forms as tables of 10,000 rows, each with its header.
 *
 *     struct output_stream stream;
 *     TRY(output_stream_open(&stream, call, error));
 *     table_add_column(&stream.table, …);
 *     … table_add_text(&stream.table, …) …                          // whole rows, then
 *     TRY(output_stream_print(&stream, false, error));              // as often as wanted; at the end, true
 *     output_stream_close(&stream);
 */
struct output_stream {
    struct table table; /* rows not printed yet */
    const struct command_call *call;
    enum table_format format;
    size_t printed; /* rows */
};

status output_stream_open(struct output_stream *stream, const struct command_call *call, struct error *error);

/* end: prints everything and closes the form. A failed write to standard output is an error. */
status output_stream_print(struct output_stream *stream, bool end, struct error *error);
void output_stream_close(struct output_stream *stream);
