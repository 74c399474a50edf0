/* fgvc-aircraft-2013b/data/: variants.txt has a class a line, images_variant_<split>.txt lines of an image id
 * (leading zeros matter), a space and a variant, which may hold spaces and slashes. The validation images are not
 * used. */
#include <string.h>

#include "datasets/reader.h"
#include "datasets/registry.h"

static status add_line(struct dataset *dataset, enum split split, const struct strings *variants, const char *line,
                       struct error *error)
{
    const char *space = strchr(line, ' ');
    for (size_t label = 0; space != NULL && label < variants->count; label++)
        if (strcmp(variants->items[label], space + 1) == 0)
            return dataset_add_file(dataset, &dataset->items[split], label, error, "data/images/%.*s.jpg",
                                    (int)(space - line), line);
    return error_set(error, ERROR_FORMAT, "expected an image id, a space and a line of variants.txt, found \"%s\"",
                     line);
}

static status open_split(struct dataset *dataset, enum split split, const struct strings *variants, struct error *error)
{
    const char *name = split == SPLIT_TRAIN ? "data/images_variant_train.txt" : "data/images_variant_test.txt";
    struct strings lines = {0};
    status result = dataset_read_lines(dataset, name, &lines, error);
    for (size_t i = 0; result == OK && i < lines.count; i++)
        if ((result = add_line(dataset, split, variants, lines.items[i], error)) != OK)
            error_context(error, "%s/%s/%s:%zu", dataset->root, dataset->folder, name, i + 1);
    strings_free(&lines);
    return result;
}

static status open_aircraft(struct dataset *dataset, const struct options *options, struct error *error)
{
    (void)options;
    struct strings variants = {0};
    status result = dataset_read_lines(dataset, "data/variants.txt", &variants, error);
    for (size_t i = 0; result == OK && i < variants.count; i++)
        result = dataset_add_class(dataset, variants.items[i], error);
    for (int split = 0; result == OK && split < SPLITS; split++)
        result = open_split(dataset, (enum split)split, &variants, error);
    strings_free(&variants);
    return result;
}

static const char *const folders[] = {"fgvc-aircraft-2013b", NULL};

const struct dataset_reader dataset_aircraft = {
    .name = "aircraft",
    .source = "FGVC-Aircraft 2013b: its own train and test lists, 100 variants",
    .folders = folders,
    .options = dataset_listed_options,
    .listed = true,
    .open = open_aircraft,
};
