/* dtd/dtd/labels/{train1,test1}.txt, lines "<class>/<file>", of images in dtd/dtd/images/; CoOp's layout has both
 * directly in dtd/. Partition 1 alone; the validation images are not used. The classes are the sorted folder names of
 * the training list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/readers/reader.h"

/* The folders of labels and images below the dataset's own. */
static const char *const torchvision_part = "dtd/", *const coop_part = "";

/* One of its lists of images. */
struct listing {
    struct dataset *dataset;
    struct dataset_items *items;
    const char *part;
    struct strings classes;
};

static status add_line(void *context, const char *line, struct error *error)
{
    const struct listing *list = context;
    OWNED char *name = xstrndup(line, strcspn(line, "/"));
    size_t label = strchr(line, '/') != NULL ? strings_find_sorted(&list->classes, name) : list->classes.count;
    if (label < list->classes.count)
        return dataset_add_file(list->dataset, list->items, label, error, "%simages/%s", list->part, line);
    return error_set(error, ERROR_FORMAT, "expected a class of train1.txt, a slash and a file, found \"%s\"", line);
}

static void list_classes(struct dataset *dataset, const struct strings *lines, struct strings *classes)
{
    SCOPED(strings_free) struct strings all = {0};
    for (size_t i = 0; i < lines->count; i++)
        strings_add(&all, lines->items[i], strcspn(lines->items[i], "/"));
    strings_sort(&all);
    for (size_t i = 0; i < all.count; i++) {
        if (i > 0 && strcmp(all.items[i], all.items[i - 1]) == 0)
            continue;
        strings_add(classes, all.items[i], strlen(all.items[i]));
        dataset_add_class(dataset, all.items[i]);
    }
}

static status open_dtd(struct dataset *dataset, const struct options *options, struct error *error)
{
    static const char *const names[SPLITS] = {"train1", "test1"};
    struct listing list = {.dataset = dataset};
    SCOPED(strings_free) struct strings lines = {0};
    char path[DATASET_PATH];
    TRY(dataset_path(dataset, "labels", path, error));
    list.part = file_is_directory(path) ? coop_part : torchvision_part;
    status result = OK;
    for (int split = 0; split < SPLITS; split++) {
        list.items = &dataset->items[split];
        snprintf(path, sizeof path, "%slabels/%s.txt", list.part, names[split]);
        if (split == SPLIT_TRAIN && (result = dataset_read_lines(dataset, path, &lines, error)) == OK)
            list_classes(dataset, &lines, &list.classes);
        NEXT(result, dataset_each_line(dataset, path, add_line, &list, error));
    }
    strings_free(&list.classes);
    return result;
}

const struct dataset_reader dataset_dtd = {
    .name = "dtd",
    .source = "Describable Textures r1.0.1: partition 1, train and test",
    .folders = {"dtd"},
    .options = dataset_listed_options,
    .listed = true,
    .coop = &(const struct coop){.file = "split_zhou_DescribableTextures.json",
                                 .places = {{"dtd", "images"}, {"dtd", "dtd/images"}}},
    .open = open_dtd,
};
