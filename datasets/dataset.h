/* What a dataset is: class names, prompt templates, and items that are an image and a label.
 *
 *     struct dataset *dataset;
 *     TRY(dataset_open(&dataset, "dtd", root, NULL, log, error));
 *     struct image image;                                   // [height, width, 3] RGB
 *     int label;
 *     TRY(dataset_read(dataset, SPLIT_TEST, 0, &image, &label, error));
 *     image_free(&image);
 *     dataset_close(dataset);
 *
 * One reader is one file and one line in registry.c; toy.c is the template to copy. Safe to read from several threads.
 */
#ifndef MTIL_DATASETS_DATASET_H
#define MTIL_DATASETS_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "core/log.h"
#include "core/option.h"
#include "core/status.h"
#include "datasets/image/image.h"

enum split { SPLIT_TRAIN, SPLIT_TEST };
enum { SPLITS = 2 };

struct dataset;

/* name: a reader of the registry; root: the folder that holds the reader's folders ("--data-location"). options: the reader's own
 * keys, NULL for defaults, borrowed during the call. classnames.txt beside the data (one name a line) overrides the names. */
status dataset_open(struct dataset **dataset, const char *name, const char *root, const struct options *options,
                    const struct log *log, struct error *error);
void dataset_close(struct dataset *dataset); /* NULL is allowed */

const char *dataset_name(const struct dataset *dataset);
size_t dataset_size(const struct dataset *dataset, enum split split);
size_t dataset_classes(const struct dataset *dataset);
const char *dataset_class_name(const struct dataset *dataset, size_t index);
size_t dataset_templates(const struct dataset *dataset);
const char *dataset_template(const struct dataset *dataset, size_t index); /* holds "{}"; the first one is trained with */
int dataset_label(const struct dataset *dataset, enum split split, size_t index);

/* Decodes item index; the caller frees the image. The error names the file and what is wrong with it. */
status dataset_read(const struct dataset *dataset, enum split split, size_t index, struct image *image, int *label,
                    struct error *error);

/* "path/of/file.jpg" or "train.bin[17]", for messages and tables; the caller frees it. */
char *dataset_item_name(const struct dataset *dataset, enum split split, size_t index);

/* template with "{}" replaced by name; the caller frees it, NULL when out of memory. */
char *prompt_format(const char *template, const char *name);

#endif
