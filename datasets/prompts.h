/* Built-in prompts, prompts/DATASET.txt: lines with "{}" are the templates of the MTIL benchmark, as in its public code
 * ("{}" stands for the class name; training uses the first one, evaluation all); others are class names by label, for
 * datasets whose files have none.
 *
 *     struct strings templates = {0};
 *     prompts_add_templates("eurosat", &templates);            // "a centered satellite photo of {}.", …
 *     strings_free(&templates);
 */
#pragma once

#include "datasets/formats/strings.h"

/* Append to the list. An unknown dataset has one template, "a photo of a {}.", and no names. */
void prompts_add_templates(const char *dataset, struct strings *templates);
void prompts_add_classes(const char *dataset, struct strings *classes);
