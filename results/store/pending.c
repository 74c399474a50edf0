#include "results/store/pending.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"

static size_t size_of(const struct value *value)
{
    return value->kind == VALUE_TEXT || value->kind == VALUE_BLOB ? value->bytes.size : 0;
}

status pending_add(struct pending *pending, int kind, const struct value *values, size_t count, struct error *error)
{
    size_t size = sizeof(struct pending_row) + count * sizeof *values;
    GROW(pending->rows, pending->count);
    for (size_t i = 0; i < count; i++)
        size += size_of(&values[i]) + 1;
    struct pending_row *row = calloc(1, size);
    if (!row)
        return error_set(error, ERROR_MEMORY, "results: no memory for a row");
    *row = (struct pending_row){.kind = kind, .count = count};
    char *behind = (char *)&row->values[count];
    for (size_t i = 0; i < count; i++) {
        row->values[i] = values[i];
        if (size_of(&values[i]) == 0)
            continue;
        row->values[i].bytes.data = memcpy(behind, values[i].bytes.data, values[i].bytes.size);
        behind += values[i].bytes.size + 1; /* the NUL of a text */
    }
    pending->rows[pending->count++] = row;
    return OK;
}

void pending_clear(struct pending *pending)
{
    for (size_t i = 0; i < pending->count; i++)
        free(pending->rows[i]);
    free(pending->rows);
    *pending = (struct pending){0};
}
