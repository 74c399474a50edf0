/* Internal: a folder whose sub-folders are classes, as listed by torchvision's ImageFolder. */
#pragma once

#include "datasets/readers/reader.h"

/* Appends the images (image_file_recognized) below folder, at any depth, to items, and its other files to
 * dataset->left_out. folder is relative to the dataset's own. */
status image_folder_add(struct dataset *dataset, const char *folder, size_t label, struct dataset_items *items,
                        struct error *error);

/* Appends the names of the sub-folders of the dataset's folder/part, sorted, to names, and their images to items, labels by
 * position. Images beside the sub-folders are left out. */
status image_folder_list(struct dataset *dataset, const char *part, struct strings *names, struct dataset_items *items,
                         struct error *error);
