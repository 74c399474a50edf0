/* Finds class names that are the same text to CLIP's tokenizer, so that one of the classes can never win. Case, blanks,
 * and the Unicode form of accented letters make no difference.
 *
 *     struct same_names same;
 *     same_names_find(&same, names, count);
 *     if (same.count > 0) … names[same.first] and names[same.second] …
 */
#pragma once

#include <stddef.h>

struct same_names {
    size_t count;         /* names that repeat an earlier one */
    size_t first, second; /* second: the first such name; first: the name that it repeats */
};

void same_names_find(struct same_names *same, const char *const *names, size_t count);
