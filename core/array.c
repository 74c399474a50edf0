#include "core/array.h"

#include <string.h>

#include "core/alloc.h"
#include "core/arena.h"

/* The array is full at 0, 8, 16, 32, … items. */
void array_grow(void *items, size_t count, size_t size)
{
    enum { LEAST = 8 };
    void *grown;
    if (count != 0 && (count < LEAST || (count & (count - 1)) != 0))
        return;
    memcpy(&grown, items, sizeof grown);
    grown = xrealloc(grown, array_size(count == 0 ? LEAST : 2 * count, size));
    memcpy(items, &grown, sizeof grown);
}

int array_by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
