/* Class names that are one text to CLIP's tokenizer, so that one of the classes can never win: in any case, with other blanks
 * around or within them, in either Unicode spelling of a letter with an accent.
 *
 *     struct same_names same;
 *     TRY(same_names_find(&same, names, count, error));
 *     if (same.count > 0) … names[same.first] and names[same.second] …
 */
#ifndef MTIL_DATASETS_SAME_NAMES_H
#define MTIL_DATASETS_SAME_NAMES_H

#include <stddef.h>

#include "core/status.h"

struct same_names {
    size_t count;         /* names that an earlier one has */
    size_t first, second; /* the foremost of these, second, and the one that has it */
};

status same_names_find(struct same_names *same, const char *const *names, size_t count, struct error *error);

#endif
