#include "harness/commands/output.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/terminal/screen.h"
#include "results/query.h"

enum { ROWS_OF_A_TABLE = 10000 };

void output_words(const struct command_call *call, const char *words)
{
    SCOPED(text_free) struct text visible = {0};
    text_add_visible(&visible, words);
    fputs(visible.data, call->out);
}

static enum table_format format_of(const struct command_call *call)
{
    return (enum table_format)options_choice(call->options, "format");
}

/* Whether the command has --columns, and whether it was given. */
static bool has_columns(const struct command_call *call)
{
    return options_find(options_table(call->options), "columns") != NULL;
}

static bool chooses(const struct command_call *call)
{
    return has_columns(call) && options_given(call->options, "columns");
}

void output_table(const struct command_call *call, const struct table *table)
{
    output_table_as(call, table, format_of(call));
}

/* A terminal gets what fits, anything else the whole. */
void output_table_as(const struct command_call *call, const struct table *table, enum table_format format)
{
    const char *plain = getenv("NO_COLOR");
    bool colour = screen_obeys(call->out) && (plain == NULL || *plain == 0);
    int width = format == TABLE_TEXT && !chooses(call) ? screen_columns(call->out) : 0;
    SCOPED(text_free) struct text text = {0}, left_out = {0};
    if (width > 0)
        table_render_within(table, (size_t)width, colour, &text, &left_out);
    else
        table_render(table, format, colour, &text);
    if (text.size > 0)
        fwrite(text.data, 1, text.size, call->out);
    if (left_out.size > 0)
        log_info(call->log, "in %d columns there is no room for %s%s", width, left_out.data,
                 has_columns(call) ? "; --columns chooses, --columns all prints all" : "");
}

/* Marks the columns of a name, which every table with it has. */
static bool choose(const struct table *table, const char *name, bool *keep)
{
    bool found = false;
    for (size_t i = 0; i < table->columns; i++) {
        const char *title = table->column[i].title;
        size_t size = strlen(name);
        if (strcmp(name, "all") == 0 || (strncmp(title, name, size) == 0 && strcmp(title + size, " ±") == 0) ||
            strcmp(title, name) == 0)
            keep[i] = found = true;
    }
    return found;
}

static status unknown_column(const struct table *table, const char *name, struct error *error)
{
    OWNED const char **titles = xcalloc(table->columns + 1, sizeof *titles);
    for (size_t i = 0; i < table->columns; i++)
        titles[i] = table->column[i].title;
    return error_unknown_word(error, "command line: --columns", "column", name, titles, table->columns);
}

status output_chosen(const struct command_call *call, struct table *table, struct error *error)
{
    size_t count = chooses(call) ? options_list_size(call->options, "columns") : 0;
    OWNED bool *keep = xcalloc(table->columns + 1, sizeof *keep);
    for (size_t i = 0; i < count; i++)
        if (!choose(table, options_list_item(call->options, "columns", i), keep))
            return unknown_column(table, options_list_item(call->options, "columns", i), error);
    if (count > 0)
        table_keep(table, keep);
    output_table(call, table);
    return OK;
}

/* --- Long tables --- */

void output_stream_open(struct output_stream *stream, const struct command_call *call)
{
    *stream = (struct output_stream){.call = call, .format = format_of(call)};
}

void output_stream_close(struct output_stream *stream)
{
    table_free(&stream->table);
}

/* "[", rows and "]" of one array, from arrays of some rows each. */
static void print_json(const struct output_stream *stream, const char *text, size_t size, bool end)
{
    FILE *out = stream->call->out;
    size_t rows = table_rows(&stream->table);
    if (stream->printed == 0)
        fputs("[", out);
    else if (rows > 0)
        fputs(",", out);
    fwrite(text + 1, 1, size - strlen(rows > 0 ? "[\n]\n" : "[]\n"), out);
    if (end)
        fputs(stream->printed + rows > 0 ? "\n]\n" : "]\n", out);
}

static void print_part(const struct output_stream *stream, bool end)
{
    SCOPED(text_free) struct text text = {0};
    table_render(&stream->table, stream->format, false, &text);
    if (stream->format == TABLE_CSV)
        fputs(stream->printed > 0 ? strchr(text.data, '\n') + 1 : text.data, stream->call->out); /* the header once */
    else
        print_json(stream, text.data, text.size, end);
}

status output_stream_print(struct output_stream *stream, bool end, struct error *error)
{
    FILE *out = stream->call->out;
    size_t rows = table_rows(&stream->table);
    bool in_parts = stream->format == TABLE_CSV || stream->format == TABLE_JSON,
         due = in_parts ? rows > 0 : rows >= ROWS_OF_A_TABLE;
    if (!due && !(end && (in_parts || rows > 0 || stream->printed == 0)))
        return OK;
    if (isatty(fileno(out)))
        progress_end(stream->call->progress);
    if (in_parts)
        print_part(stream, end);
    else
        output_table_as(stream->call, &stream->table, stream->format);
    stream->printed += rows;
    table_clear(&stream->table);
    if (fflush(out) != 0 || ferror(out))
        return error_set(error, ERROR_IO, "standard output: could not be written to the end");
    return OK;
}

status output_end_of_run(const struct command_call *call, struct store *store, int64_t run, struct error *error)
{
    SCOPED(table_free) struct table table = {0};
    TRY(query_named(store, "end-of-run", &(struct query_filter){.run = run}, &table, error));
    output_table(call, &table);
    return OK;
}
