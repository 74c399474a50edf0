/* Internal: a folder whose sub-folders are classes, as listed by torchvision's ImageFolder. */
#ifndef MTIL_DATASETS_READERS_IMAGE_FOLDER_H
#define MTIL_DATASETS_READERS_IMAGE_FOLDER_H

#include "datasets/readers/reader.h"

/* Appends the names of the sub-folders of the dataset's folder/part, sorted, to names, and their images (jpg jpeg
 * png ppm bmp pgm tif tiff webp in any case, at any depth) to items, labels by position. */
status image_folder_list(struct dataset *dataset, const char *part, struct strings *names, struct dataset_items *items,
                         struct error *error);

#endif
