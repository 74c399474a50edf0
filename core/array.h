/* An array that grows by one item at a time. Its capacity follows from its count and is not stored.
 *
 *     TRY(ARRAY_GROW(list->names, list->count, "names", error));
 *     list->names[list->count++] = name;
 *
 * The array is NULL at first, is grown by ARRAY_GROW alone, and is freed with free.
 */
#ifndef MTIL_CORE_ARRAY_H
#define MTIL_CORE_ARRAY_H

#include <stddef.h>

#include "core/status.h"

/* Grows the array so that item `count` fits; on failure (ERROR_MEMORY, "no memory for 9 names") it is unchanged. */
#define ARRAY_GROW(items, count, what, error) array_grow(&(items), count, sizeof *(items), what, error)

/* items is the address of the array's pointer, whatever its type. */
status array_grow(void *items, size_t count, size_t size, const char *what, struct error *error);

#endif
