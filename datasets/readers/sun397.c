/* SUN397/ClassName.txt has a class a line ("/a/apartment_building/outdoor"), SUN397/<letter>/<class>[/<sub>]/sun_*.jpg
 * the images, at any depth. Images are in byte order of their paths; the reference takes the file system's order, so
 * its split differs from machine to machine. Split by permutation. */
#include <string.h>

#include "datasets/readers/reader.h"
#include "datasets/split/split.h"

static bool is_sun_image(const char *name)
{
    size_t size = strlen(name);
    return size >= 8 && strncmp(name, "sun_", 4) == 0 && strcmp(name + size - 4, ".jpg") == 0;
}

/* The class of a/aquarium/sun_x.jpg is the line /a/aquarium. Neighbours share it, so the search begins with the last
 * one. */
static status find_class(const struct strings *lines, const char *file, size_t *label, struct error *error)
{
    size_t size = (size_t)(strrchr(file, '/') - file);
    for (size_t i = 0; i < lines->count; i++) {
        size_t candidate = (*label + i) % lines->count;
        const char *line = lines->items[candidate];
        if (line[0] == '/' && strlen(line) == size + 1 && memcmp(line + 1, file, size) == 0) {
            *label = candidate;
            return OK;
        }
    }
    return error_set(error, ERROR_FORMAT, "%s: ClassName.txt has no class \"/%.*s\"", file, (int)size, file);
}

static status add_images(struct dataset *dataset, const struct strings *lines, const struct strings *files,
                         struct error *error)
{
    SCOPED(dataset_items_free) struct dataset_items items = {0};
    size_t label = 0;
    for (size_t i = 0; i < files->count; i++) {
        const char *file = files->items[i] + strlen("./");
        TRY(strchr(file, '/') != NULL
                ? find_class(lines, file, &label, error)
                : error_set(error, ERROR_FORMAT, "%s: an image outside of the class folders", file));
        TRY(dataset_add_file(dataset, &items, label, error, "%s", file));
    }
    TRY(dataset_require_images(dataset, &items, error));
    return dataset_split_randomly(dataset, &items, SPLIT_SEED, false, error);
}

static status add_classes(struct dataset *dataset, const struct strings *lines, struct error *error)
{
    for (size_t i = 0; i < lines->count; i++) {
        const char *line = lines->items[i];
        if (strlen(line) < 4 || line[0] != '/' || line[2] != '/')
            return error_set(error, ERROR_FORMAT, "%s/%s/ClassName.txt:%zu: expected /letter/class, found \"%s\"",
                             dataset->root, dataset->folder, i + 1, line);
        dataset_add_class(dataset, line + 3);
    }
    return OK;
}

static status open_sun397(struct dataset *dataset, const struct options *options, struct error *error)
{
    char path[DATASET_PATH];
    SCOPED(strings_free) struct strings lines = {0}, files = {0};
    TRY(dataset_path(dataset, "", path, error));
    path[strlen(path) - 1] = 0;
    TRY(dataset_read_lines(dataset, "ClassName.txt", &lines, error));
    TRY(add_classes(dataset, &lines, error));
    TRY(strings_list_files(&files, path, ".", is_sun_image, &dataset->left_out, error));
    strings_sort(&files);
    return add_images(dataset, &lines, &files, error);
}

const struct dataset_reader dataset_sun397 = {
    .name = "sun397",
    .source = "SUN397, torchvision's layout; seeded 80/20 split over byte-sorted paths",
    .folders = {"SUN397", "sun397/SUN397"},
    .options = dataset_listed_options,
    .coop = &(const struct coop){.file = "split_zhou_SUN397.json", .places = {{"sun397", "SUN397"}, {"SUN397", ""}}},
    .open = open_sun397,
};
