/* The inputs of mtil embed: the image files of a folder, or the lines of a file.
 *
 *     struct embed_inputs inputs;
 *     TRY(embed_inputs_open(&inputs, "photos", NULL, error));
 *     … inputs.path/inputs.names[i] …
 *     embed_inputs_free(&inputs);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

struct embed_inputs {
    bool images;
    const char *path; /* borrowed */
    size_t count;
    char **names; /* file names in the order of their bytes, or the lines themselves */
};

/* One of images and texts is NULL. Sub-folders and line ends (\n or \r\n) are left out. A folder without files, an
 * empty line and a NUL byte are errors, with file and line. */
status embed_inputs_open(struct embed_inputs *inputs, const char *images, const char *texts, struct error *error);
void embed_inputs_free(struct embed_inputs *inputs);
