/* What a scope owns is released at its end, on every way out of it, the last declared first.
 *
 *     OWNED char *path = path_join(folder, name);      // free(path)
 *     SCOPED(text_free) struct text line = {0};        // text_free(&line)
 *     SCOPED(store_close_at) struct store *store = NULL; // store_close(store), unless it is NULL
 *     TRY(store_open(&store, path, error));
 *     *result = TAKE(store);                           // now the caller's
 *
 * A variable is initialized where it is declared: an earlier TRY would release what is not there yet. longjmp releases nothing.
 */
#pragma once

#include <stdlib.h>

#define SCOPED(release) __attribute__((cleanup(release)))
#define OWNED SCOPED(owned_free)

/* Defines release_at for SCOPED pointers of a type whose release takes the pointer. */
#define SCOPED_POINTER(type, release)                                                                                  \
    static inline void release##_at(type **pointer)                                                                    \
    {                                                                                                                  \
        if (*pointer != NULL)                                                                                          \
            release(*pointer);                                                                                         \
    }

/* The value of a SCOPED pointer, which is NULL from here on. */
#define TAKE(pointer)                                                                                                  \
    __extension__({                                                                                                    \
        __typeof__(pointer) taken_ = (pointer);                                                                        \
        (pointer) = NULL;                                                                                              \
        taken_;                                                                                                        \
    })

static inline void owned_free(void *pointer)
{
    free(*(void **)pointer);
}
