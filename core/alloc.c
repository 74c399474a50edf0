#include "core/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Other threads may be at work, so nothing is tidied up. */
void *xgiven(void *memory, size_t size)
{
    if (memory != NULL)
        return memory;
    fprintf(stderr,
            "mtil: error: the system has no memory for another %zu bytes; end other programs, or raise the limit\n",
            size);
    _exit(EXIT_FAILURE);
}

void *xmalloc(size_t size)
{
    return xgiven(malloc(size > 0 ? size : 1), size);
}

void *xcalloc(size_t count, size_t size)
{
    return xgiven(calloc(count > 0 ? count : 1, size), count * size);
}

void *xrealloc(void *memory, size_t size)
{
    return xgiven(realloc(memory, size > 0 ? size : 1), size);
}

char *xstrdup(const char *string)
{
    return xgiven(strdup(string), strlen(string) + 1);
}

char *xstrndup(const char *string, size_t size)
{
    return xgiven(strndup(string, size), size + 1);
}
