#include "results/store/pending.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"

/* Bytes behind a value, a text's NUL included. */
static size_t size_behind(const struct value *value)
{
    return value->kind == VALUE_TEXT ? value->bytes.size + 1 : value->kind == VALUE_BLOB ? value->bytes.size : 0;
}

static struct pending_row *copy_row(int kind, const struct value *values, size_t count)
{
    size_t size = sizeof(struct pending_row) + count * sizeof *values;
    for (size_t i = 0; i < count; i++)
        size += size_behind(&values[i]);
    struct pending_row *row = malloc(size);
    if (!row)
        return NULL;
    *row = (struct pending_row){.kind = kind, .count = count};
    char *behind = (char *)&row->values[count];
    for (size_t i = 0; i < count; i++) {
        size_t bytes = size_behind(&values[i]);
        row->values[i] = values[i];
        if (bytes == 0)
            continue;
        row->values[i].bytes.data = memcpy(behind, values[i].bytes.data, bytes);
        behind += bytes;
    }
    return row;
}

status pending_add(struct pending *pending, int kind, const struct value *values, size_t count, struct error *error)
{
    TRY(ARRAY_GROW(pending->rows, pending->count, "rows of results", error));
    struct pending_row *row = copy_row(kind, values, count);
    if (!row)
        return error_set(error, ERROR_MEMORY, "results: no memory for a row");
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
