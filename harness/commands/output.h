/* Tables as a command's answer, in the format of --format.
 *
 *     static const struct option options[] = {OUTPUT_FORMAT_OPTION, {0}};
 *     output_table(call, &table);                      // to call->out, in the requested form
 */
#pragma once

#include "harness/commands/command.h"
#include "results/table.h"

/* Choices in the order of enum table_format. */
#define OUTPUT_FORMAT_OPTION OPTION_ONE_OF("format", "table|csv|json|markdown|latex", "table", "format of the output")

/* The columns that output_chosen prints. */
#define OUTPUT_COLUMNS_OPTION                                                                                          \
    OPTION(LIST, "columns", NULL, "columns to print, or all; default: all, but on a terminal those that fit")

/* Prints words with names from outside; control characters are made visible. */
void output_words(const struct command_call *call, const char *words);

/* Colour only on a terminal and if NO_COLOR (no-color.org) is unset or empty. There a text table is as wide as the terminal. */
void output_table(const struct command_call *call, const struct table *table);
void output_table_as(const struct command_call *call, const struct table *table, enum table_format format);

/* The results of a run that its command prints at the end. */
struct store;
status output_end_of_run(const struct command_call *call, struct store *store, int64_t run, struct error *error);

/* A table with the columns that the option --columns names; the others are removed from the table. ERROR_ARGUMENT for a name that
 * it lacks. */
status output_chosen(const struct command_call *call, struct table *table, struct error *error);

/* A long table, printed while it grows, so that a million rows take no more memory than some thousands. CSV and JSON
 * are printed row by row, the other forms as tables of 10,000 rows, each with its header.
 *
 *     struct output_stream stream;
 *     output_stream_open(&stream, call);
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

void output_stream_open(struct output_stream *stream, const struct command_call *call);

/* end: prints everything and closes the form. A failed write to standard output is an error. */
status output_stream_print(struct output_stream *stream, bool end, struct error *error);
void output_stream_close(struct output_stream *stream);
