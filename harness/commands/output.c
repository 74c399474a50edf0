#include "harness/commands/output.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "harness/terminal/screen.h"

enum { ROWS_OF_A_TABLE = 10000 };

void output_words(const struct command_call *call, const char *words)
{
    struct text visible = {0};
    text_add_visible(&visible, words);
    fputs(visible.data, call->out);
    text_free(&visible);
}

static enum table_format format_of(const struct command_call *call)
{
    return (enum table_format)options_choice(call->options, "format");
}

void output_table(const struct command_call *call, const struct table *table)
{
    output_table_as(call, table, format_of(call));
}

void output_table_as(const struct command_call *call, const struct table *table, enum table_format format)
{
    const char *plain = getenv("NO_COLOR");
    bool colour = screen_obeys(call->out) && (plain == NULL || *plain == 0);
    struct text text = {0};
    table_render(table, format, colour, &text);
    if (text.size > 0)
        fwrite(text.data, 1, text.size, call->out);
    text_free(&text);
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
    struct text text = {0};
    table_render(&stream->table, stream->format, false, &text);
    if (stream->format == TABLE_CSV)
        fputs(stream->printed > 0 ? strchr(text.data, '\n') + 1 : text.data, stream->call->out); /* the header once */
    else
        print_json(stream, text.data, text.size, end);
    text_free(&text);
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
