/* roots/: every reader on its small root: class names, number of templates, and of each item its place, file, label
 * and pixels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "core/file.h"
#include "datasets/formats/mat.h"
#include "datasets/reader.h"
#include "datasets/split.h"
#include "tests/replay/replay_data.h"

static void check_item(struct part *part, const struct dataset *dataset, enum split split, size_t index,
                       const json_t *expected)
{
    const struct dataset_item *item = &dataset->items[split].items[index];
    const char *file = json_string_value(json_object_get(expected, "file"));
    const char *hash = json_string_value(json_object_get(expected, "sha256"));
    struct error error = {0};
    struct image image;
    int label = -1;
    char hex[65] = "";
    char *name = dataset_item_name(dataset, split, index);
    status result = dataset_read(dataset, split, index, &image, &label, &error);
    if (result == OK)
        digest_bytes(image.pixels, (size_t)image.width * (size_t)image.height * 3, hex);
    bool good = result == OK && label == json_integer_value(json_object_get(expected, "label")) &&
                item->position == json_integer_value(json_object_get(expected, "index")) &&
                image.width == json_integer_value(json_object_get(expected, "w")) &&
                image.height == json_integer_value(json_object_get(expected, "h")) && hash != NULL &&
                strcmp(hex, hash) == 0 && (file == NULL || (name != NULL && strcmp(name, file) == 0));
    part_check(part, good, "%s item %zu (%s): label %d, index %u, %d×%d %s", dataset_name(dataset), index,
               name != NULL ? name : "?", label, item->position, image.width, image.height, error.message);
    image_free(&image);
    free(name);
}

static void check_split(struct part *part, const struct dataset *dataset, enum split split, const json_t *expected)
{
    size_t count = json_array_size(expected);
    part_check(part, dataset_size(dataset, split) == count, "%s: %zu items, expected %zu", dataset_name(dataset),
               dataset_size(dataset, split), count);
    for (size_t i = 0; i < count && i < dataset_size(dataset, split); i++)
        check_item(part, dataset, split, i, json_array_get(expected, i));
}

static void check_dataset(struct part *part, const struct dataset *dataset, const json_t *expected)
{
    const json_t *classes = json_object_get(expected, "classes");
    json_int_t templates = json_integer_value(json_object_get(expected, "num_templates"));
    bool good = dataset_classes(dataset) == json_array_size(classes);
    for (size_t i = 0; good && i < dataset_classes(dataset); i++)
        good = strcmp(dataset_class_name(dataset, i), json_string_value(json_array_get(classes, i))) == 0;
    part_check(part, good, "%s: class names differ", dataset_name(dataset));
    part_check(part, dataset_templates(dataset) == (size_t)templates, "%s: %zu templates, expected %lld",
               dataset_name(dataset), dataset_templates(dataset), (long long)templates);
    check_split(part, dataset, SPLIT_TRAIN, json_object_get(expected, "train"));
    check_split(part, dataset, SPLIT_TEST, json_object_get(expected, "test"));
}

/* version: of CIFAR's archives, NULL for readers that have one. */
static void check_root(struct part *part, const char *reader, const char *root, const char *version,
                       const json_t *expected)
{
    struct error error = {0};
    struct dataset *dataset = NULL;
    struct options *options = NULL;
    const struct dataset_reader *found;
    status result = dataset_reader_find(&found, reader, &error);
    if (result == OK)
        result = options_create(&options, found->options, &error);
    if (result == OK && version != NULL)
        result = options_set(options, "version", version, "replay_data", &error);
    if (result == OK)
        result = dataset_open(&dataset, reader, root, options, NULL, &error);
    part_check(part, result == OK, "%s", error.message);
    if (result == OK)
        check_dataset(part, dataset, expected);
    dataset_close(dataset);
    options_destroy(options);
}

static void check_folder(struct part *part, const char *roots, const char *name)
{
    char reader[64];
    char *root = path_format("%s/%s", roots, name);
    json_t *expected = part_json(part, root, "expected.json");
    if (expected == NULL)
        part_check(part, false, "%s has no expected.json", root);
    snprintf(reader, sizeof reader, "%s", name);
    if (strlen(reader) > 3 && strcmp(reader + strlen(reader) - 3, "_gz") == 0)
        reader[strlen(reader) - 3] = 0;
    if (expected != NULL && strncmp(reader, "cifar", 5) == 0) {
        check_root(part, reader, root, "python", expected);
        check_root(part, reader, root, "binary", expected);
    } else if (expected != NULL) {
        check_root(part, reader, root, NULL, expected);
    }
    json_decref(expected);
    free(root);
}

void part_roots(struct part *part, const char *folder)
{
    struct strings names = {0};
    struct error error = {0};
    char *roots = path_format("%s/roots", folder);
    part->absent = !file_is_directory(roots);
    if (!part->absent && strings_list_folders(&names, roots, &error) != OK)
        part_check(part, false, "%s", error.message);
    for (size_t i = 0; i < names.count; i++)
        check_folder(part, roots, names.items[i]);
    part->absent = names.count == 0;
    strings_free(&names);
    free(roots);
}

/* --- mat_variants/: the same values in other ways of storing them
 * --------------------------------------------------- */

static bool same_numbers(struct mat *a, struct mat *b, const char *variable, const char *field)
{
    struct mat_numbers one, two;
    struct error error;
    bool first = mat_read_numbers(a, variable, field, &one, &error) == OK;
    bool second = mat_read_numbers(b, variable, field, &two, &error) == OK;
    bool same =
        first == second &&
        (!first || (one.count == two.count && memcmp(one.values, two.values, one.count * sizeof *one.values) == 0));
    if (first)
        mat_numbers_free(&one);
    if (second)
        mat_numbers_free(&two);
    return same;
}

static bool same_strings(struct mat *a, struct mat *b, const char *variable, const char *field)
{
    struct strings one = {0}, two = {0};
    struct error error;
    bool first = mat_read_strings(a, variable, field, &one, &error) == OK;
    bool same = first == (mat_read_strings(b, variable, field, &two, &error) == OK) && one.count == two.count;
    for (size_t i = 0; first && same && i < one.count; i++)
        same = strcmp(one.items[i], two.items[i]) == 0;
    strings_free(&one);
    strings_free(&two);
    return same;
}

static void compare_mat(struct part *part, const char *original, const char *variant)
{
    struct mat *a = NULL, *b = NULL;
    struct error error = {0};
    if (mat_open(&a, original, &error) == OK && mat_open(&b, variant, &error) == OK) {
        part_check(part,
                   same_numbers(a, b, "trnid", NULL) && same_numbers(a, b, "tstid", NULL) &&
                       same_numbers(a, b, "labels", NULL) && same_numbers(a, b, "annotations", "class"),
                   "%s: numbers differ from %s", variant, original);
        part_check(part, same_strings(a, b, "annotations", "fname") && same_strings(a, b, "class_names", NULL),
                   "%s: strings differ from %s", variant, original);
    } else {
        part_check(part, false, "%s", error.message);
    }
    mat_close(a);
    mat_close(b);
}

/* "setid.plain.mat" is a variant of the file setid.mat somewhere below root. */
static void find_original(struct part *part, const char *root, const struct strings *files, const char *variant)
{
    const char *name = strrchr(variant, '/') + 1;
    size_t stem = strcspn(name, ".");
    for (size_t i = 0; i < files->count; i++) {
        const char *candidate = strrchr(files->items[i], '/') + 1;
        if (strncmp(candidate, name, stem) != 0 || strcmp(candidate + stem, ".mat") != 0)
            continue;
        char *original = path_format("%s/%s", root, files->items[i]), *path = path_format("%s/%s", root, variant);
        compare_mat(part, original, path);
        free(original);
        free(path);
        return;
    }
    part_check(part, false, "%s/%s: no original found", root, variant);
}

static bool is_mat(const char *name)
{
    size_t size = strlen(name);
    return size > 4 && strcmp(name + size - 4, ".mat") == 0;
}

void part_mat_variants(struct part *part, const char *folder)
{
    struct strings names = {0};
    struct error error = {0};
    char *roots = path_format("%s/roots", folder);
    part->absent = true;
    if (file_is_directory(roots) && strings_list_folders(&names, roots, &error) != OK)
        part_check(part, false, "%s", error.message);
    for (size_t i = 0; i < names.count; i++) {
        char *root = path_format("%s/%s", roots, names.items[i]), *variants = path_format("%s/mat_variants", root);
        struct strings files = {0};
        if (file_is_directory(variants) && strings_list_files(&files, root, ".", is_mat, &error) == OK) {
            part->absent = false;
            for (size_t k = 0; k < files.count; k++)
                if (strncmp(files.items[k], "./mat_variants/", 15) == 0)
                    find_original(part, root, &files, files.items[k]);
        }
        strings_free(&files);
        free(variants);
        free(root);
    }
    strings_free(&names);
    free(roots);
}

/* --- splits.json
 * ---------------------------------------------------------------------------------------------------- */

static bool same_hash(const uint32_t *order, size_t count, const char *expected)
{
    char *text = malloc(count * 11 + 1), hex[65];
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += (size_t)sprintf(text + size, "%s%u", i > 0 ? "," : "", order[i]);
    digest_bytes(text, size, hex);
    free(text);
    return expected != NULL && strcmp(hex, expected) == 0;
}

static bool same_values(const uint32_t *order, const json_t *expected)
{
    bool same = json_array_size(expected) > 0;
    for (size_t i = 0; i < json_array_size(expected); i++)
        same = same && order[i] == json_integer_value(json_array_get(expected, i));
    return same;
}

static void check_case(struct part *part, const json_t *expected)
{
    size_t n = (size_t)json_integer_value(json_object_get(expected, "n")), train = split_train_count(n);
    json_int_t seed = json_integer_value(json_object_get(expected, "seed"));
    const json_t *last = json_object_get(expected, "last20");
    uint32_t *order = malloc((n + 1) * sizeof *order);
    split_permutation((uint64_t)seed, n, order);
    bool good = train == (size_t)json_integer_value(json_object_get(expected, "train")) &&
                n - train == (size_t)json_integer_value(json_object_get(expected, "test")) &&
                same_values(order, json_object_get(expected, "first20")) &&
                same_values(order + n - json_array_size(last), last) &&
                same_hash(order + train, n - train, json_string_value(json_object_get(expected, "test_sha256"))) &&
                same_hash(order, n, json_string_value(json_object_get(expected, "perm_sha256")));
    part_check(part, good, "n = %zu, seed %lld: another permutation", n, (long long)seed);
    free(order);
}

void part_splits(struct part *part, const char *folder)
{
    json_t *splits = part_json(part, folder, "splits.json"), *cases = json_object_get(splits, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_case(part, json_array_get(cases, i));
    json_decref(splits);
}
