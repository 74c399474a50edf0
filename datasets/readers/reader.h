/* For readers only: the struct that a reader fills in, and the functions to do so.
 *
 *     static status open_toy(struct dataset *dataset, const struct options *options, struct error *error)
 *     {
 *         struct strings lines = {0};
 *         char path[DATASET_PATH];
 *         TRY(dataset_path(dataset, "labels/train1.txt", path, error));
 *         TRY(strings_read_lines(&lines, path, error)); …
 *         dataset_add_class(dataset, "aquarium_fish");                     // becomes "aquarium fish"
 *         return dataset_add_file(dataset, &dataset->items[SPLIT_TRAIN], label, error, "images/%s.jpg", id);
 *     }
 *
 * dataset.c checks labels, looks for missing files, applies classnames.txt and templates.txt, and frees everything,
 * also after an error.
 */
#pragma once

#include "datasets/dataset.h"
#include "datasets/formats/strings.h"

enum { DATASET_PATH = 4096 };

struct dataset_item {
    char *file; /* relative to the root; NULL: a row of raw images */
    int32_t label;
    uint32_t position; /* in the reader's own list, before any split by permutation */
    uint32_t source;   /* of raw images */
};

struct dataset_items {
    size_t count;
    struct dataset_item *items;
};

/* Images that a file keeps as samples of 8 bits, one after the other, all of one size. */
struct raw_images {
    char *name;            /* of the file, relative to the root */
    uint32_t first, count; /* positions in the reader's list */
    const uint8_t *samples;
    size_t stride;               /* from one image to the next */
    int width, height, channels; /* 1: grey, 3: three planes, red first */
    void *owner;                 /* what keeps samples alive */
    void (*release)(void *owner);
};

struct dataset {
    const struct dataset_reader *reader;
    char *root;
    const char *folder; /* the dataset's own, relative to the root; NULL: none */
    const struct log *log;
    struct strings classes, templates;
    bool names_given;     /* by classnames.txt */
    bool original_names;  /* class_names: original */
    bool skip_unreadable; /* on_unreadable: skip */
    bool skip_missing;    /* on_missing: skip */
    bool has_lists;       /* files that the user's lists name may be missing */
    struct dataset_items items[SPLITS];
    struct raw_images *sources;
    size_t source_count;
    struct dataset_items missing[SPLITS]; /* listed files that are not there */
    struct strings left_out;              /* files that are no images, and images of no class */
    const struct dataset *whole; /* the dataset that this is a part of, which owns folder and sources; or NULL */
    char *given_folder;          /* storage for readers whose folder is an option */
};

extern const struct dataset_reader dataset_aircraft, dataset_caltech101, dataset_cifar10, dataset_cifar100, dataset_dtd,
    dataset_eurosat, dataset_flowers, dataset_folder, dataset_food, dataset_mnist, dataset_oxford_pet,
    dataset_stanford_cars, dataset_sun397, dataset_tiny_imagenet, dataset_toy;

/* CoOp's split of a reader, as dtd/split_zhou_DescribableTextures.json with images in dtd/images (CoOp's layout) or
 * dtd/dtd/images (torchvision's):
 *     .coop = &(const struct coop){.file = "split_zhou_DescribableTextures.json",
 *                                  .places = {{"dtd", "images"}, {"dtd", "dtd/images"}}},
 */
enum { COOP_PLACES = 3 };

struct coop {
    const char *file; /* in the dataset's folder; NULL: CoOp uses the split that the reader's `open` reads */
    struct coop_place {
        const char *folder; /* the dataset's own below the root */
        const char *images; /* below folder: the base of the file's paths */
    } places[COOP_PLACES];  /* the first that has the file and the images is taken */
};

/* Options of readers that are `listed` or have a split of CoOp's; most have no others. */
extern const struct option dataset_listed_options[];

/* root/folder/name. */
status dataset_path(const struct dataset *dataset, const char *name, char path[DATASET_PATH], struct error *error);

/* Appends the lines of root/folder/name. */
status dataset_read_lines(const struct dataset *dataset, const char *name, struct strings *lines, struct error *error);

/* Calls take for each line of root/folder/name; an error names the line. */
typedef status dataset_line_taker(void *context, const char *line, struct error *error);
status dataset_each_line(const struct dataset *dataset, const char *name, dataset_line_taker *take, void *context,
                         struct error *error);

/* Appends the lines of root/folder/name if that exists; an empty line or file is an error. */
status dataset_read_override(const struct dataset *dataset, const char *name, struct strings *lines, bool *found,
                             struct error *error);

/* Appends a class; every underscore becomes a space, unless class_names is original. */
void dataset_add_class(struct dataset *dataset, const char *name);

/* The names of classnames.txt, or else the built-in ones: for datasets whose names go by position. */
status dataset_add_positional_classes(struct dataset *dataset, struct error *error);

/* Appends item and takes over its file name. */
void dataset_add_item(struct dataset_items *items, struct dataset_item item);

/* Appends an image file; format gives its path below the dataset's folder. A path that leads out of it is an error. */
status dataset_add_file(struct dataset *dataset, struct dataset_items *items, size_t label, struct error *error,
                        const char *format, ...) PRINTF_LIKE(5, 6);

/* Takes over images and appends an item for each row, with its label. */
void dataset_add_raw(struct dataset *dataset, enum split split, struct raw_images images, const int32_t *labels);

/* Appends an item that the reader's own `read` makes; its source is the split. */
void dataset_add_generated(struct dataset *dataset, enum split split, size_t label);

/* Cuts all items into both splits by PyTorch's seeded 80/20 random_split, and empties items. by_class: 80/20 of each class, in
 * the same order; an only image is trained on. */
status dataset_split_randomly(struct dataset *dataset, struct dataset_items *items, uint64_t seed, bool by_class,
                              struct error *error);

/* The same with the benchmark's seed, for datasets whose names go by position: as many folders below `part`, each a `kind`
 * ("category", of "categories"), as there are names, and none without images. */
status dataset_split_positional(struct dataset *dataset, struct dataset_items *items, const char *part,
                                const char *kind, const char *kinds, size_t folders, struct error *error);
void dataset_items_free(struct dataset_items *items);

/* Drops the items of a split for which keep returns false; the others stay in order. */
void dataset_keep_items(struct dataset *dataset, enum split split, const bool *keep);

/* Adds an item's name below the dataset's own folder, or its row, and its label. */
void dataset_digest_item(struct digest *digest, const struct dataset *dataset, enum split split, size_t index);

/* Warns of files that a split's list names more than once. */
void dataset_warn_repeated(const struct dataset *dataset);

/* A class without items is an error that names it, unless on_missing is skip. */
status dataset_require_images(const struct dataset *dataset, const struct dataset_items *items, struct error *error);

/* --- folders whose sub-folders are classes, as listed by torchvision's ImageFolder ----------------------------------- */

/* Appends the images (image_file_recognize) below folder, at any depth, to items, and its other files to
 * dataset->left_out. folder is relative to the dataset's own. */
status image_folder_add(struct dataset *dataset, const char *folder, size_t label, struct dataset_items *items,
                        struct error *error);

/* Appends the names of the sub-folders of the dataset's folder/part, sorted, to names, and their images to items, labels by
 * position. Images beside the sub-folders are left out. */
status image_folder_list(struct dataset *dataset, const char *part, struct strings *names, struct dataset_items *items,
                         struct error *error);

/* Whether a folder has class folders of images, or train and test with such, and no images of its own. */
status image_folder_recognize(bool *found, const char *folder, struct error *error);
