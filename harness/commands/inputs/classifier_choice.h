/* Detects a classifier's file (an image tower, possibly with experts and a head) instead of a CLIP in --weights, and
 * reads its dataset and classes.
 *
 *     struct classifier_choice choice;
 *     TRY(classifier_choice_read(&choice, "weights.safetensors", &stated, error));
 *     if (choice.is_one) … choice.about.classes … choice.metadata.tasks[0].name …
 *     classifier_choice_free(&choice);
 */
#pragma once

#include "adapters/files/adapter_metadata.h"
#include "models/vit.h"

struct classifier_choice {
    bool is_one;
    struct vit_file about;
    struct safetensors *file;         /* owns the metadata's strings */
    struct adapter_metadata metadata; /* one task; none where the file names none */
};

/* stated: heads and activation as far as the caller gives them; zeros: neither. After a failure there is nothing to
 * free. */
status classifier_choice_read(struct classifier_choice *choice, const char *weights, const struct clip_stated *stated,
                              struct error *error);
void classifier_choice_free(struct classifier_choice *choice); /* all zero is allowed */
