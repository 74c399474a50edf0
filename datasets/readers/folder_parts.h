/* Internal: training and test images that come from several folders of class folders, or from lists of files.
 *
 *     struct folder_parts parts[SPLITS] = {{train, 1}, {test, 3}};            // "s1"; "s3", "s7", "s10"
 *     TRY(folder_parts_open(dataset, parts, &folders, error));
 *
 * A line of a list is a file below the dataset's folder and, after a blank, the number of its class. The class is the folder
 * that the file lies in; a number and a folder belong together, or the list is refused.
 */
#pragma once

#include "datasets/readers/reader.h"

/* Folders, and lists, below the dataset's own folder. */
struct folder_parts {
    const char **names;
    size_t count;
};

/* Fills in the items of both splits. folders: the names of the classes' folders in byte order, which the labels count; the
 * caller frees them. A class that is tested without being trained is an error. */
status folder_parts_open(struct dataset *dataset, const struct folder_parts parts[SPLITS], struct strings *folders,
                         struct error *error);
