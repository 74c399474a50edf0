/* fgvc-aircraft-2013b/data/ (CoOp: fgvc_aircraft/): variants.txt has a class a line, images_variant_<split>.txt lines
 * of an image id (leading zeros matter), a space and a variant, which may hold spaces and slashes; images/<id>.jpg.
 * The validation images are not used. */
#include <stdio.h>
#include <string.h>

#include "datasets/readers/reader.h"

#define COOP_FOLDER "fgvc_aircraft" /* CoOp's layout has no folder "data" */

/* Where the files lie below the dataset's folder. */
static const char *part_of(const struct dataset *dataset)
{
    return strcmp(dataset->folder, COOP_FOLDER) == 0 ? "" : "data/";
}

/* One of its lists of images. */
struct listing {
    struct dataset *dataset;
    struct dataset_items *items;
    struct strings variants;
};

static status add_line(void *context, const char *line, struct error *error)
{
    const struct listing *list = context;
    const char *space = strchr(line, ' ');
    for (size_t label = 0; space != NULL && label < list->variants.count; label++)
        if (strcmp(list->variants.items[label], space + 1) == 0)
            return dataset_add_file(list->dataset, list->items, label, error, "%simages/%.*s.jpg",
                                    part_of(list->dataset), (int)(space - line), line);
    return error_set(error, ERROR_FORMAT, "expected an image id, a space and a line of variants.txt, found \"%s\"",
                     line);
}

static status open_aircraft(struct dataset *dataset, const struct options *options, struct error *error)
{
    static const char *const names[SPLITS] = {"images_variant_train.txt", "images_variant_test.txt"};
    struct listing list = {.dataset = dataset};
    char path[DATASET_PATH];
    snprintf(path, sizeof path, "%svariants.txt", part_of(dataset));
    status result = dataset_read_lines(dataset, path, &list.variants, error);
    for (size_t i = 0; result == OK && i < list.variants.count; i++)
        dataset_add_class(dataset, list.variants.items[i]);
    for (int split = 0; split < SPLITS; split++) {
        list.items = &dataset->items[split];
        snprintf(path, sizeof path, "%s%s", part_of(dataset), names[split]);
        NEXT(result, dataset_each_line(dataset, path, add_line, &list, error));
    }
    strings_free(&list.variants);
    return result;
}

const struct dataset_reader dataset_aircraft = {
    .name = "aircraft",
    .source = "FGVC-Aircraft 2013b: its own train and test lists, 100 variants",
    .folders = {"fgvc-aircraft-2013b", COOP_FOLDER},
    .options = dataset_listed_options,
    .listed = true,
    .coop = &(const struct coop){0}, /* the same lists */
    .open = open_aircraft,
};
