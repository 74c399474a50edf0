/* dtd/dtd/labels/{train1,test1}.txt, lines "<class>/<file>", of images in dtd/dtd/images/; CoOp's layout has both
 * directly in dtd/. Partition 1 alone; the validation images are not used. The classes are the sorted folder names of
 * the training list. */
#include <stdio.h>
#include <string.h>

#include "core/file.h"
#include "datasets/readers/reader.h"
#include "datasets/readers/registry.h"
#include "datasets/split/coop.h"

/* The folders of labels and images below the dataset's own. */
static const char *const torchvision_part = "dtd/", *const coop_part = "";

static status add_line(struct dataset *dataset, enum split split, const char *part, const struct strings *classes,
                       const char *line, struct error *error)
{
    char name[DATASET_PATH];
    const char *slash = strchr(line, '/');
    if (slash != NULL && slash - line < DATASET_PATH) {
        memcpy(name, line, (size_t)(slash - line));
        name[slash - line] = 0;
        size_t label = strings_find_sorted(classes, name);
        if (label < classes->count)
            return dataset_add_file(dataset, &dataset->items[split], label, error, "%simages/%s", part, line);
    }
    return error_set(error, ERROR_FORMAT, "expected a class of train1.txt, a slash and a file, found \"%s\"", line);
}

static void list_classes(struct dataset *dataset, const struct strings *lines, struct strings *classes)
{
    struct strings all = {0};
    for (size_t i = 0; i < lines->count; i++)
        strings_add(&all, lines->items[i], strcspn(lines->items[i], "/"));
    strings_sort(&all);
    for (size_t i = 0; i < all.count; i++) {
        if (i > 0 && strcmp(all.items[i], all.items[i - 1]) == 0)
            continue;
        strings_add(classes, all.items[i], strlen(all.items[i]));
        dataset_add_class(dataset, all.items[i]);
    }
    strings_free(&all);
}

static status open_split(struct dataset *dataset, enum split split, const char *part, struct strings *classes,
                         struct error *error)
{
    char name[32];
    struct strings lines = {0};
    snprintf(name, sizeof name, "%slabels/%s1.txt", part, split == SPLIT_TRAIN ? "train" : "test");
    status result = dataset_read_lines(dataset, name, &lines, error);
    if (result == OK && split == SPLIT_TRAIN)
        list_classes(dataset, &lines, classes);
    for (size_t i = 0; result == OK && i < lines.count; i++)
        if ((result = add_line(dataset, split, part, classes, lines.items[i], error)) != OK)
            error_context(error, "%s/%s/%s:%zu", dataset->root, dataset->folder, name, i + 1);
    strings_free(&lines);
    return result;
}

static status open_dtd(struct dataset *dataset, const struct options *options, struct error *error)
{
    (void)options;
    char path[DATASET_PATH];
    struct strings classes = {0};
    TRY(dataset_path(dataset, "labels", path, error));
    const char *part = file_is_directory(path) ? coop_part : torchvision_part;
    status result = open_split(dataset, SPLIT_TRAIN, part, &classes, error);
    NEXT(result, open_split(dataset, SPLIT_TEST, part, &classes, error));
    strings_free(&classes);
    return result;
}

static const char *const folders[] = {"dtd", NULL};
static const struct coop coop = {.file = "split_zhou_DescribableTextures.json",
                                 .places = {{"dtd", "images"}, {"dtd", "dtd/images"}}};

const struct dataset_reader dataset_dtd = {
    .name = "dtd",
    .source = "Describable Textures r1.0.1: partition 1, train and test",
    .folders = folders,
    .options = dataset_listed_options,
    .listed = true,
    .coop = &coop,
    .open = open_dtd,
};
