#include "core/array.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

/* The array is full at 0, 8, 16, 32, … items. */
status array_grow(void *items, size_t count, size_t size, const char *what, struct error *error)
{
    enum { LEAST = 8 };
    void *grown;
    if (count != 0 && (count < LEAST || (count & (count - 1)) != 0))
        return OK;
    memcpy(&grown, items, sizeof grown);
    grown = realloc(grown, array_size(count == 0 ? LEAST : 2 * count, size));
    if (grown == NULL)
        return error_set(error, ERROR_MEMORY, "no memory for %zu %s", count + 1, what);
    memcpy(items, &grown, sizeof grown);
    return OK;
}
