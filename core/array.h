/* An array that grows by one item at a time. Its capacity follows from its count and is not stored.
 *
 *     GROW(list->names, list->count);
 *     list->names[list->count++] = name;
 *
 * The array is NULL at first, is grown by GROW alone, and is freed with free.
 */
#pragma once

#include <stddef.h>

/* Grows the array so that item `count` fits. */
#define GROW(items, count) array_grow(&(items), count, sizeof *(items))

/* items is the address of the array's pointer, whatever its type. */
void array_grow(void *items, size_t count, size_t size);

/* The order of texts, for qsort. */
int array_by_text(const void *a, const void *b);
