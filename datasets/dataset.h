/* A dataset: class names, prompt templates, and items, each an image with a label.
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
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/digest.h"
#include "core/option.h"
#include "core/scope.h"
#include "core/status.h"
#include "datasets/image/image.h"

enum split { SPLIT_TRAIN, SPLIT_TEST };
enum { SPLITS = 2 };

struct dataset;
struct dataset_item;
struct coop;

/* A kind of dataset: a constant table per reader, listed in registry.c. */
struct dataset_reader {
    const char *name;
    const char *source;           /* origin of its layout and split, one line */
    const char *folders[3];       /* its own folder below the root: the first that exists; ends with NULL */
    const struct option *options; /* its own keys; NULL: none */
    bool listed;                  /* a file lists the images, so some may be missing */
    const struct coop *coop;      /* location of CoOp's split (readers/reader.h); NULL: none */
    status (*open)(struct dataset *dataset, const struct options *options, struct error *error);
    status (*read)(const struct dataset *dataset, const struct dataset_item *item, struct image *image,
                   struct error *error); /* NULL: items are image files or rows of raw images */
};

/* "split", an option of datasets whose images are listed: whose lists define the training and test images. */
#define OPTION_SPLIT                                                                                                   \
    OPTION_ONE_OF("split", "torchvision|coop", "torchvision",                                                          \
                  "lists of training and test images: torchvision's, or CoOp's split_zhou files")

/* "on_missing", an option of datasets whose files may be missing. */
#define OPTION_ON_MISSING                                                                                              \
    OPTION_ONE_OF("on_missing", "error|skip", "error",                                                                 \
                  "response to listed images that are missing: stop with an error, or skip and count them")

/* "on_unreadable", which dataset_survey reads (datasets/survey.h). */
#define OPTION_ON_UNREADABLE                                                                                           \
    OPTION_ONE_OF("on_unreadable", "stop|skip", "stop",                                                                \
                  "response to images that cannot be decoded: stop, or skip and count them", .incidental = "*")

/* "class_names", which applies to every dataset. */
#define OPTION_CLASS_NAMES                                                                                             \
    OPTION_ONE_OF("class_names", "spaced|original", "spaced",                                                          \
                  "spelling of class names: with spaces for underscores, or as the dataset's files have them")

const struct dataset_reader *const *dataset_readers(size_t *count); /* by name */

/* An unknown name is an error with the nearest known one. */
status dataset_reader_find(const struct dataset_reader **reader, const char *name, struct error *error);

/* Published numbers of classes and images, to distinguish complete copies from incomplete ones. */
struct dataset_published {
    const char *reader, *split; /* split: "torchvision", "coop" */
    size_t classes, train, test;
};
const struct dataset_published *dataset_published_find(const char *reader, const char *split); /* NULL: unknown */

/* Whether root contains the reader's folder, or may contain it where permission to look is missing, which dataset_open
 * reports. */
bool dataset_found(const struct dataset_reader *reader, const char *root);

/* Finds folders below root for the option path of the reader "folder": folders that no other reader looks into, with
 * class folders of images, or with train and test of this form; "." alone where root is such a folder. others: folders
 * that no reader looks into. The caller frees both (directory_free); after a failure there is nothing to free. */
struct directory;
status dataset_find_folders(const char *root, struct directory *found, struct directory *others, struct error *error);

/* name: a reader of the registry; root: the folder that holds the readers' folders ("--data-location"). options: the
 * reader's own keys, NULL for defaults, borrowed during the call. log may be NULL.
 *
 * Two files in the dataset's own folder (caltech101/, MNIST/, cifar-100-binary/ …) override what is built in or
 * derived: classnames.txt, one name per line in label order, and templates.txt, one template per line with one "{}".
 * Where names are assigned by position (caltech101, eurosat, flowers, mnist), the number of lines is the number of
 * classes; elsewhere it must agree. */
status dataset_open(struct dataset **dataset, const char *name, const char *root, const struct options *options,
                    const struct log *log, struct error *error);
void dataset_close(struct dataset *dataset); /* NULL is allowed */
SCOPED_POINTER(struct dataset, dataset_close)

/* Few-shot: keeps `shots` training images of each class, the first of a shuffle that depends on seed and class only,
 * in their original order. A class with fewer keeps all; with repeat, `shots` of them are drawn with replacement. Either
 * is warned about. */
void dataset_keep_shots(struct dataset *dataset, size_t shots, bool repeat, uint64_t seed);

/* A dataset of some classes of whole, given by their labels; class classes[i] gets label i. Borrows from whole,
 * which must be closed after it. */
struct dataset *dataset_select(const struct dataset *whole, const size_t *classes, size_t count);

/* Gives the dataset other classes (copied); its class c becomes class labels[c]. */
void dataset_set_classes(struct dataset *dataset, const char *const *classes, size_t count, const int32_t *labels);

/* A dataset without images, only class names and templates (copied), for prompts. */
void dataset_of_names(struct dataset **dataset, const char *const *classes, size_t class_count,
                      const char *const *templates, size_t template_count);

/* A dataset of that many images and classes, with the reader's templates, to count with: nothing can be read. */
void dataset_of_sizes(struct dataset **dataset, const struct dataset_published *sizes);

/* A dataset of all image files below a folder, at any depth, as training images of one class, without test images. */
status dataset_of_images(struct dataset **dataset, const char *path, struct error *error);

/* A dataset of training images of other datasets, which must stay open, in the given order and with their labels
 * there. */
struct dataset_place {
    const struct dataset *dataset;
    uint32_t item;
};
struct dataset *dataset_of_items(const struct dataset_place *places, size_t count);

/* The training images and classes of `count` datasets, which must stay open and as they are, one after the other: class c
 * of part k gets the label c + the number of classes of the parts before. shared: all have the classes of the first. */
struct dataset *dataset_join(const struct dataset *const *parts, size_t count, bool shared);

/* Replaces the dataset's templates by one, with one "{}". */
status dataset_set_template(struct dataset *dataset, const char *template, struct error *error);

const char *dataset_name(const struct dataset *dataset);
size_t dataset_size(const struct dataset *dataset, enum split split);
const char *dataset_own_folder(const struct dataset *dataset); /* its own folder, relative to the root; NULL: none */
bool dataset_skips_unreadable(const struct dataset *dataset);  /* on_unreadable: skip */
size_t dataset_missing(const struct dataset *dataset);         /* listed images that "on_missing: skip" left out */
const char *dataset_missing_file(const struct dataset *dataset, enum split split, size_t index); /* NULL at the end */
const char *dataset_left_out(const struct dataset *dataset,
                             size_t index); /* a file that is no image of a class; NULL at the end */
size_t dataset_classes(const struct dataset *dataset);
const char *dataset_class_name(const struct dataset *dataset, size_t index);
size_t dataset_templates(const struct dataset *dataset);
const char *dataset_template(const struct dataset *dataset, size_t index); /* contains "{}"; training uses template 0 */
int dataset_label(const struct dataset *dataset, enum split split, size_t index); /* below dataset_classes */

/* Decodes item index; the caller frees the image. label may be NULL. The error names the file and its fault. */
status dataset_read(const struct dataset *dataset, enum split split, size_t index, struct image *image, int *label,
                    struct error *error);

/* Whether the items are image files, which need decoding, rather than samples of a larger file. */
bool dataset_has_files(const struct dataset *dataset, enum split split);

/* SHA-256 of everything the pixels of a split depend on. list: the root and the items, in order; content: the list
 * and the sizes, times and inodes of the items' files. ERROR_ARGUMENT if the images are generated. */
struct dataset_identity {
    char list[DIGEST_SIZE], content[DIGEST_SIZE];
};
status dataset_identify(const struct dataset *dataset, enum split split, struct dataset_identity *identity,
                        struct error *error);
const char *dataset_root(const struct dataset *dataset);

/* SHA-256 of a split's items in order and their labels, independent of the root: names below the dataset's own
 * folder, or rows of a larger file. */
void dataset_digest_items(const struct dataset *dataset, enum split split, char hash[DIGEST_SIZE]);

/* The file of an item, relative to the root, borrowed. *record: its row there, where the file holds many images, else
 * −1. Generated images have the reader's name alone. */
const char *dataset_item_file(const struct dataset *dataset, enum split split, size_t index, int64_t *record);

/* "path/of/file.jpg" relative to the root, or "cifar-100-binary/train.bin[17]", for messages and tables; the caller
 * frees it. */
char *dataset_item_name(const struct dataset *dataset, enum split split, size_t index);

/* template with "{}" replaced by name; the caller frees it. */
char *prompt_format(const char *template, const char *name);
