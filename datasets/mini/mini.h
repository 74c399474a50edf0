/* Writes the built-in suite to disk, every dataset in exactly the layout of the real one.
 *
 *     struct mini_settings settings = {.seed = 1, .threads = pool, .log = log};
 *     TRY(mini_write("data", &settings, error));
 *     // data/fgvc-aircraft-2013b/data/images/…, data/caltech101/…, …, data/mini.json last
 *
 * A complete root is left alone; an interrupted one is written again, with the same bytes. Where a reader's class names
 * are fixed by position, a classnames.txt beside the data holds the suite's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "core/threads.h"

enum { MINI_GENERATOR = 3 }; /* raised whenever a picture or a layout changes */

struct mini_settings {
    uint64_t seed;
    struct threads *threads; /* borrowed; NULL: the caller works alone */
    const struct log *log;   /* may be NULL */
    void (*progress)(void *context, const char *dataset, size_t done,
                     size_t total); /* NULL, or called by the caller's thread */
    void *context;
    const struct stop *stop; /* ends with ERROR_STOPPED; may be NULL */
};

/* Writes below root, which is created. ERROR_ARGUMENT when root holds datasets that are not this suite's, or this
   suite from another seed or generator: they are never overwritten. */
status mini_write(const char *root, const struct mini_settings *settings, struct error *error);
