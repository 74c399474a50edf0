#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "results/compare/internal.h"

#define NOTE_SIZE 1024

status compare_no_memory(const struct compare *c, struct error *error)
{
    return error_set(error, ERROR_MEMORY, "%s: out of memory for a comparison of %zu runs", store_path(c->store),
                     c->runs);
}

status compare_add_note(struct compare *c, struct error *error, const char *format, ...)
{
    char *note = malloc(NOTE_SIZE), **larger = realloc(c->result->note, (c->result->note_count + 1) * sizeof *larger);
    if (larger)
        c->result->note = larger;
    if (!note || !larger) {
        free(note);
        return compare_no_memory(c, error);
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(note, NOTE_SIZE, format, arguments);
    va_end(arguments);
    c->result->note[c->result->note_count++] = note;
    return OK;
}
