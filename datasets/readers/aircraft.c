/* fgvc-aircraft-2013b/data/ (CoOp: fgvc_aircraft/): variants.txt has a class a line, images_variant_<split>.txt lines
 * of an image id (leading zeros matter), a space and a variant, which may hold spaces and slashes; images/<id>.jpg.
 * The validation images are not used. */
#include <stdio.h>
#include <string.h>

#include "datasets/readers/reader.h"
#include "datasets/readers/registry.h"
#include "datasets/split/coop.h"

#define COOP_FOLDER "fgvc_aircraft" /* CoOp's layout has no folder "data" */

/* Where the files lie below the dataset's folder. */
static const char *part_of(const struct dataset *dataset)
{
    return strcmp(dataset->folder, COOP_FOLDER) == 0 ? "" : "data/";
}

static status read_lines(const struct dataset *dataset, const char *name, struct strings *lines, struct error *error)
{
    char path[DATASET_PATH];
    snprintf(path, sizeof path, "%s%s", part_of(dataset), name);
    return dataset_read_lines(dataset, path, lines, error);
}

static status add_line(struct dataset *dataset, enum split split, const struct strings *variants, const char *line,
                       struct error *error)
{
    const char *space = strchr(line, ' ');
    for (size_t label = 0; space != NULL && label < variants->count; label++)
        if (strcmp(variants->items[label], space + 1) == 0)
            return dataset_add_file(dataset, &dataset->items[split], label, error, "%simages/%.*s.jpg",
                                    part_of(dataset), (int)(space - line), line);
    return error_set(error, ERROR_FORMAT, "expected an image id, a space and a line of variants.txt, found \"%s\"",
                     line);
}

static status open_split(struct dataset *dataset, enum split split, const struct strings *variants, struct error *error)
{
    const char *name = split == SPLIT_TRAIN ? "images_variant_train.txt" : "images_variant_test.txt";
    struct strings lines = {0};
    status result = read_lines(dataset, name, &lines, error);
    for (size_t i = 0; result == OK && i < lines.count; i++)
        if ((result = add_line(dataset, split, variants, lines.items[i], error)) != OK)
            error_context(error, "%s/%s/%s%s:%zu", dataset->root, dataset->folder, part_of(dataset), name, i + 1);
    strings_free(&lines);
    return result;
}

static status open_aircraft(struct dataset *dataset, const struct options *options, struct error *error)
{
    (void)options;
    struct strings variants = {0};
    status result = read_lines(dataset, "variants.txt", &variants, error);
    for (size_t i = 0; result == OK && i < variants.count; i++)
        dataset_add_class(dataset, variants.items[i]);
    for (int split = 0; result == OK && split < SPLITS; split++)
        result = open_split(dataset, (enum split)split, &variants, error);
    strings_free(&variants);
    return result;
}

static const char *const folders[] = {"fgvc-aircraft-2013b", COOP_FOLDER, NULL};
static const struct coop coop = {0}; /* the same lists */

const struct dataset_reader dataset_aircraft = {
    .name = "aircraft",
    .source = "FGVC-Aircraft 2013b: its own train and test lists, 100 variants",
    .folders = folders,
    .options = dataset_listed_options,
    .listed = true,
    .coop = &coop,
    .open = open_aircraft,
};
