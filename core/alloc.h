/* Allocations that do not fail: where the system gives no more, the program ends with a message and exit status 1. A run goes
 * on from its resume file to the same bits, so a path back from every small allocation would buy nothing. Arenas,
 * images and whatever has a size that a file names are refused with ERROR_MEMORY instead. */
#pragma once

#include <stddef.h>

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *memory, size_t size);
char *xstrdup(const char *string);
char *xstrndup(const char *string, size_t size);
void *xgiven(void *memory, size_t size); /* what a library allocated for size bytes, and NULL where it could not */
