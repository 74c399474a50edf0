/* Test images that are also training images, whatever their files are called: copies, links, training images of other
 * tasks.
 *
 *     same_images_add(&same, task, split, item, &found);                  // of all tasks and splits
 *     trained_images_warn(&same, &run->data, log);
 */
#pragma once

#include "datasets/same.h"
#include "harness/scenario/data.h"

/* A warning for each task that has such test images, with their number. Sorts the images, whose sets are tasks. */
void trained_images_warn(struct same_images *same, const struct data *data, const struct log *log);
