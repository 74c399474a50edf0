/* A few generated images in memory, for tests without files; also the template for new readers.
 *
 * To add a dataset: 1. Copy this file to <name>.c. Say at its head where the files lie below the root and where its
 * split comes from. 2. Fill in the table at its end; `folders` names its own folder below the root. 3. In `open`, add
 * classes in label order and items in the order of the dataset's lists, with the functions of reader.h.
 *    Image files need no `read`; for datasets in one file, see mnist.c.
 * 4. Declare the table in reader.h, list it in registry.c and the file in CMakeLists.txt. Templates of its own are a
 *    file prompts/<name>.txt, listed there, too.
 * 5. Put a small root into tests/fixtures/data and a test into tests/datasets.
 */
#include <string.h>

#include "core/rng.h"
#include "datasets/readers/reader.h"

enum { SIDE = 16 };

static const struct option own_options[] = {OPTION_NUMBER(INTEGER, "classes", 1, 6, "4", "number of classes"),
                                            OPTION_NUMBER(INTEGER, "train", 1, 10000, "8", "training images per class"),
                                            OPTION_NUMBER(INTEGER, "test", 1, 10000, "4", "test images per class"),
                                            {0}};

static const struct color {
    const char *name;
    uint8_t rgb[3];
} colors[] = {{"red", {220, 30, 30}},     {"green", {30, 200, 40}}, {"blue", {30, 50, 220}},
              {"yellow", {230, 220, 40}}, {"black", {20, 20, 20}},  {"white", {240, 240, 240}}};

static status open_toy(struct dataset *dataset, const struct options *options, struct error *error)
{
    size_t classes = (size_t)options_integer(options, "classes");
    size_t each[SPLITS] = {(size_t)options_integer(options, "train"), (size_t)options_integer(options, "test")};
    for (size_t i = 0; i < classes; i++)
        dataset_add_class(dataset, colors[i].name);
    for (int split = 0; split < SPLITS; split++)
        for (size_t i = 0; i < classes * each[split]; i++)
            dataset_add_generated(dataset, (enum split)split, i % classes);
    return OK;
}

static const uint8_t *color_of(const char *class_name)
{
    size_t i = 0;
    while (strcmp(colors[i].name, class_name) != 0)
        i++;
    return colors[i].rgb;
}

/* A square of the class's colour, with noise that depends on the item. */
static status read_toy(const struct dataset *dataset, const struct dataset_item *item, struct image *image,
                       struct error *error)
{
    const uint8_t *rgb = color_of(dataset->classes.items[item->label]);
    struct rng noise = rng_make(item->source, RNG_DRAWING, 0, item->position);
    TRY(image_create(image, SIDE, SIDE, error));
    for (size_t i = 0; i < SIDE * SIDE * 3; i++)
        image->pixels[i] = (uint8_t)(rgb[i % 3] - 15 + (int)rng_below(&noise, i, 30));
    return OK;
}

const struct dataset_reader dataset_toy = {
    .name = "toy",
    .source = "squares of one colour, generated",
    .options = own_options,
    .open = open_toy,
    .read = read_toy,
};
