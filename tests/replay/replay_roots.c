/* roots/: every reader on its small root: class names, number of templates, and of each item its place, file, label
 * and pixels; MAT files that are stored in other ways. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "datasets/formats/mat.h"
#include "datasets/readers/reader.h"
#include "tests/replay/replay_data.h"

static void check_item(struct report *report, const struct dataset *dataset, enum split split, size_t index,
                       const json_t *expected)
{
    const struct dataset_item *item = &dataset->items[split].items[index];
    const char *file = pyjson_text(expected, "file");
    struct error error = {0};
    struct image image;
    int label = -1;
    char hex[DIGEST_SIZE], *name = dataset_item_name(dataset, split, index);
    bool good = dataset_read(dataset, split, index, &image, &label, &error) == OK &&
                label == pyjson_integer(expected, "label") && item->position == pyjson_integer(expected, "index") &&
                image_fits(&image, expected, hex) && strcmp(hex, pyjson_text(expected, "sha256")) == 0 &&
                (*file == 0 || (name != NULL && strcmp(name, file) == 0));
    report_exact(report, "roots", good, "%s item %zu (%s): label %d, index %u, %d×%d %s", dataset_name(dataset), index,
                 name != NULL ? name : "?", label, item->position, image.width, image.height, error.message);
    image_free(&image);
    free(name);
}

static void check_split(struct report *report, const struct dataset *dataset, enum split split, const json_t *expected)
{
    size_t count = json_array_size(expected);
    if (expected == NULL) {
        skip_item("roots", "%s: no list of its %s items", dataset_name(dataset),
                  split == SPLIT_TRAIN ? "train" : "test");
        return;
    }
    report_exact(report, "roots", dataset_size(dataset, split) == count, "%s: %zu items, expected %zu",
                 dataset_name(dataset), dataset_size(dataset, split), count);
    for (size_t i = 0; i < count && i < dataset_size(dataset, split); i++)
        check_item(report, dataset, split, i, json_array_get(expected, i));
}

static void check_names(struct report *report, const struct dataset *dataset, const json_t *classes)
{
    bool good = dataset_classes(dataset) == json_array_size(classes);
    size_t i = 0;
    for (; good && i < dataset_classes(dataset); i++) {
        const char *name = json_string_value(json_array_get(classes, i));
        good = name != NULL && strcmp(dataset_class_name(dataset, i), name) == 0;
    }
    report_exact(report, "roots", good, "%s: class names differ: %zu, expected %zu; first difference at %zu",
                 dataset_name(dataset), dataset_classes(dataset), json_array_size(classes), i > 0 ? i - 1 : 0);
}

static void check_dataset(struct report *report, const struct dataset *dataset, const json_t *expected)
{
    const json_t *classes = json_object_get(expected, "classes"),
                 *templates = json_object_get(expected, "num_templates");
    if (classes != NULL)
        check_names(report, dataset, classes);
    if (templates != NULL)
        report_exact(report, "roots", dataset_templates(dataset) == (size_t)json_integer_value(templates),
                     "%s: %zu templates, expected %lld", dataset_name(dataset), dataset_templates(dataset),
                     (long long)json_integer_value(templates));
    check_split(report, dataset, SPLIT_TRAIN, json_object_get(expected, "train"));
    check_split(report, dataset, SPLIT_TEST, json_object_get(expected, "test"));
}

/* version: of CIFAR's archives, NULL for readers that have one. */
static void check_root(struct report *report, const struct dataset_reader *reader, const char *root,
                       const char *version, const json_t *expected)
{
    struct error error = {0};
    struct dataset *dataset = NULL;
    struct options *options = NULL;
    status result = options_create(&options, reader->options, &error);
    if (result == OK && version != NULL)
        result = options_set(options, "version", version, "replay_data", &error);
    if (result == OK)
        result = dataset_open(&dataset, reader->name, root, options, NULL, &error);
    report_exact(report, "roots", result == OK, "%s", error.message);
    if (result == OK)
        check_dataset(report, dataset, expected);
    dataset_close(dataset);
    options_destroy(options);
}

/* CIFAR's archives come in two versions, of which the root may hold one or both. */
static void check_versions(struct report *report, const struct dataset_reader *reader, const char *root,
                           const json_t *expected)
{
    static const char *const versions[] = {"python", "binary"};
    for (size_t i = 0; i < 2; i++) {
        char *folder = path_format("%s/%s", root, reader->folders[i]);
        if (file_is_directory(folder))
            check_root(report, reader, root, versions[i], expected);
        free(folder);
    }
}

/* --- mat_variants/: the same values in other ways of storing them ------------------------------------------------- */

static bool same_numbers(const char *a, const char *b, const char *variable, const char *field)
{
    struct mat_numbers one = {0}, two = {0};
    struct error error;
    bool first = mat_read_numbers(a, variable, field, &one, &error) == OK;
    bool same = first == (mat_read_numbers(b, variable, field, &two, &error) == OK) && one.count == two.count;
    for (size_t i = 0; first && same && i < one.count; i++)
        same = one.values[i] == two.values[i];
    mat_numbers_free(&one);
    mat_numbers_free(&two);
    return same;
}

static bool same_strings(const char *a, const char *b, const char *variable, const char *field)
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

/* Whether it is a file of variables, none of which has this name. */
static bool opens(const char *path, struct error *error)
{
    struct mat_numbers none;
    mat_read_numbers(path, "no such variable", NULL, &none, error);
    return strstr(error->message, "expected a variable") != NULL;
}

static void compare_mat(struct report *report, const char *a, const char *b)
{
    struct error error;
    if (!opens(a, &error) || !opens(b, &error))
        return report_exact(report, "mat variants", false, "%s", error.message);
    report_exact(report, "mat variants",
                 same_numbers(a, b, "trnid", NULL) && same_numbers(a, b, "tstid", NULL) &&
                     same_numbers(a, b, "labels", NULL) && same_numbers(a, b, "annotations", "class"),
                 "%s: numbers differ from %s", b, a);
    report_exact(report, "mat variants",
                 same_strings(a, b, "annotations", "fname") && same_strings(a, b, "class_names", NULL),
                 "%s: strings differ from %s", b, a);
}

/* "setid.plain.mat" is a variant of the file setid.mat somewhere below root. */
static void find_original(struct report *report, const char *root, const struct strings *files, const char *variant)
{
    const char *name = strrchr(variant, '/') + 1;
    size_t stem = strcspn(name, ".");
    for (size_t i = 0; i < files->count; i++) {
        const char *candidate = strrchr(files->items[i], '/') + 1;
        if (strncmp(candidate, name, stem) != 0 || strcmp(candidate + stem, ".mat") != 0)
            continue;
        char *original = path_format("%s/%s", root, files->items[i]), *path = path_format("%s/%s", root, variant);
        compare_mat(report, original, path);
        free(original);
        free(path);
        return;
    }
    skip_item("mat variants", "%s/%s: there is no file that it is a variant of", root, variant);
}

static bool is_mat(const char *name)
{
    return ends_with(name, ".mat");
}

static void check_variants(struct report *report, const char *root)
{
    struct strings files = {0};
    struct error ignored;
    char *variants = path_format("%s/mat_variants", root);
    if (file_is_directory(variants) && strings_list_files(&files, root, ".", is_mat, NULL, &ignored) == OK)
        for (size_t i = 0; i < files.count; i++)
            if (strncmp(files.items[i], "./mat_variants/", 15) == 0)
                find_original(report, root, &files, files.items[i]);
    strings_free(&files);
    free(variants);
}

/* --- every root ---------------------------------------------------------------------------------------------------- */

/* "stanford cars" of the list is the reader stanford_cars. */
static const struct dataset_reader *find_reader(const json_t *expected)
{
    const struct dataset_reader *reader;
    char *name = xstrdup(pyjson_text(expected, "name"));
    for (char *space = name; (space = strchr(space, ' ')) != NULL;)
        *space = '_';
    must(dataset_reader_find(&reader, name, &error));
    free(name);
    return reader;
}

static void check_folder(struct report *report, const char *roots, const char *name)
{
    char *root = path_format("%s/%s", roots, name);
    json_t *expected = part_json(report, root, root, "expected.json");
    const struct dataset_reader *reader = expected != NULL ? find_reader(expected) : NULL;
    if (reader != NULL && options_find(reader->options, "version") != NULL)
        check_versions(report, reader, root, expected);
    else if (reader != NULL)
        check_root(report, reader, root, NULL, expected);
    check_variants(report, root);
    json_decref(expected);
    free(root);
}

void part_roots(struct report *report, const char *folder)
{
    struct strings names = {0};
    char *roots = path_format("%s/roots", folder);
    if (file_is_directory(roots))
        must(strings_list_folders(&names, roots, &error));
    else
        printf("roots: skipped: not in this folder\n");
    for (size_t i = 0; i < names.count; i++)
        check_folder(report, roots, names.items[i]);
    strings_free(&names);
    free(roots);
}
