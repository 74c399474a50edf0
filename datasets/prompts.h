/* Built-in prompts, prompts/DATASET.txt: lines with "{}" are the templates of the MTIL benchmark, as in its public code
 * ("{}" stands for the class name; training uses the first one, evaluation all); others are class names by label, for
 * datasets whose files have none.
 *
 *     struct strings templates = {0};
 *     prompts_add_templates("eurosat", &templates);            // "a centered satellite photo of {}.", …
 *     strings_free(&templates);
 *     struct same_names same;
 *     prompts_find_same_names(&same, names, count);
 *     if (same.count > 0) … names[same.first] and names[same.second] …
 */
#pragma once

#include "datasets/formats/strings.h"

/* Append to the list. An unknown dataset has one template, "a photo of a {}.", and no names. */
void prompts_add_templates(const char *dataset, struct strings *templates);
void prompts_add_classes(const char *dataset, struct strings *classes);

struct same_names {
    size_t count;         /* names that repeat an earlier one */
    size_t first, second; /* second: the first such name; first: the name that it repeats */
};

/* Finds class names that are the same text to CLIP's tokenizer, so that one of the classes can never win. Case, blanks, and the
 * Unicode form of accented letters make no difference. */
void prompts_find_same_names(struct same_names *same, const char *const *names, size_t count);
