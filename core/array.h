/* An array that grows by one item at a time. How many it has room for follows from how many it has, so nobody keeps it.
 *
 *     TRY(ARRAY_GROW(list->names, list->count, "names", error));
 *     list->names[list->count++] = name;
 *
 * It is NULL at first, grows by this alone, and is freed with free.
 */
#ifndef MTIL_CORE_ARRAY_H
#define MTIL_CORE_ARRAY_H

#include <stddef.h>

#include "core/status.h"

/* Room for one more behind the first count items; on failure (ERROR_MEMORY, "no memory for 9 names") the array is as it was. */
#define ARRAY_GROW(items, count, what, error) array_grow(&(items), count, sizeof *(items), what, error)

/* items points to the array's pointer, of whatever type. */
status array_grow(void *items, size_t count, size_t size, const char *what, struct error *error);

#endif
