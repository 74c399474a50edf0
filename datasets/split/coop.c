#include "datasets/split/coop.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "core/text.h"
#include "datasets/formats/json.h"

/* --- the file ----------------------------------------------------------------------------------------------------- */

#define SIZE_LIMIT ((size_t)64 << 20) /* the largest of them has 101,000 images in about 8 MB */

enum { KEYS = 3 };
static const char *const keys[KEYS] = {"train", "val", "test"};

static bool has_control_character(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != 0; p++)
        if (*p < ' ' || *p == 0x7f)
            return true;
    return false;
}

static status check_file(const char *file, struct error *error)
{
    if (*file == 0 || has_control_character(file))
        return error_set(error, ERROR_FORMAT, "expected the path of an image, found \"%s\"", file);
    if (*file == '/' || path_climbs(file))
        return error_set(error, ERROR_FORMAT,
                         "expected a path below the dataset's image folder, found \"%s\", which leads out of it; "
                         "refused",
                         file);
    return OK;
}

static status name_class(struct coop_split *split, json_int_t label, const char *name, struct error *error)
{
    if (label < 0 || (uint64_t)label >= split->classes.count)
        return error_set(
            error, ERROR_FORMAT,
            "expected a label of at least 0 and below %zu (the number of images), found %" JSON_INTEGER_FORMAT,
            split->classes.count, label);
    if (*name == 0 || has_control_character(name))
        return error_set(error, ERROR_FORMAT, "expected a class name, found \"%s\"", name);
    char **known = &split->classes.items[label];
    if (*known == NULL)
        *known = xstrdup(name);
    if (strcmp(*known, name) != 0)
        return error_set(error, ERROR_FORMAT,
                         "label %" JSON_INTEGER_FORMAT " is called \"%s\" here and \"%s\" before: a label has one name",
                         label, name, *known);
    return OK;
}

/* list: NULL where the items are only checked. */
static status read_item(struct coop_split *split, struct coop_list *list, json_t *item, struct error *error)
{
    json_t *file = json_array_get(item, 0), *label = json_array_get(item, 1), *name = json_array_get(item, 2);
    if (json_array_size(item) != 3 || !json_is_string(file) || !json_is_integer(label) || !json_is_string(name))
        return error_set(error, ERROR_FORMAT, "expected [image path, label, class name]");
    TRY(check_file(json_string_value(file), error));
    TRY(name_class(split, json_integer_value(label), json_string_value(name), error));
    if (list == NULL)
        return OK;
    strings_add(&list->files, json_string_value(file), json_string_length(file));
    list->labels[list->files.count - 1] = (int32_t)json_integer_value(label);
    return OK;
}

static status read_list(struct coop_split *split, struct coop_list *list, const char *key, json_t *items,
                        struct error *error)
{
    if (list != NULL)
        list->labels = xmalloc(json_array_size(items) * sizeof *list->labels);
    for (size_t i = 0; i < json_array_size(items); i++)
        if (read_item(split, list, json_array_get(items, i), error) != OK)
            return error_context(error, "%s[%zu]", key, i);
    return OK;
}

/* Cuts the classes to the labels that there are. */
static status check_labels(struct coop_split *split, struct error *error)
{
    size_t used = 0, highest = 0;
    for (size_t label = 0; label < split->classes.count; label++)
        if (split->classes.items[label] != NULL) {
            used++;
            highest = label;
        }
    for (size_t label = 0; used <= highest && label < highest; label++)
        if (split->classes.items[label] == NULL)
            return error_set(error, ERROR_FORMAT, "expected labels without gaps, found label %zu but no label %zu",
                             highest, label);
    split->classes.count = used;
    return OK;
}

static status read_lists(struct coop_split *split, json_t *root, struct error *error)
{
    struct coop_list *const kept[KEYS] = {&split->train, NULL, &split->test};
    json_t *lists[KEYS];
    size_t items = 0;
    for (int k = 0; k < KEYS; k++) {
        lists[k] = json_object_get(root, keys[k]); /* NULL where root is no object */
        if (!json_is_array(lists[k]) && (lists[k] != NULL || kept[k] != NULL))
            return error_set(error, ERROR_FORMAT,
                             "expected an object with the lists \"train\", \"val\" and \"test\", found no list \"%s\"",
                             keys[k]);
        items += json_array_size(lists[k]);
    }
    split->classes.items = xcalloc(items, sizeof *split->classes.items);
    split->classes.count = items; /* the file's limit keeps their number far below INT32_MAX */
    for (int k = 0; k < KEYS; k++)
        TRY(read_list(split, kept[k], keys[k], lists[k], error));
    return check_labels(split, error);
}

void coop_split_free(struct coop_split *split)
{
    strings_free(&split->classes);
    strings_free(&split->train.files);
    strings_free(&split->test.files);
    free(split->train.labels);
    free(split->test.labels);
    *split = (struct coop_split){0};
}

status coop_split_parse(struct coop_split *split, const void *data, size_t size, const char *name, struct error *error)
{
    SCOPED(json_decref_at) json_t *root = NULL;
    *split = (struct coop_split){0};
    TRY(json_parse(&root, data, size, name, error));
    if (read_lists(split, root, error) == OK)
        return OK;
    coop_split_free(split);
    return error_context(error, "%s", name);
}

static status read_split(struct coop_split *split, const char *path, struct error *error)
{
    SCOPED(bytes_free) struct bytes bytes = {0};
    *split = (struct coop_split){0};
    TRY(file_read(path, SIZE_LIMIT, &bytes, error));
    return coop_split_parse(split, bytes.data, bytes.size, path, error);
}

/* --- the dataset -------------------------------------------------------------------------------------------------- */

static status no_split(const struct dataset *dataset, struct error *error)
{
    SCOPED(text_free) struct text names = {0};
    size_t count;
    const struct dataset_reader *const *readers = dataset_readers(&count);
    for (size_t i = 0; i < count; i++)
        if (readers[i]->coop != NULL)
            text_add(&names, "%s%s", names.size > 0 ? ", " : "", readers[i]->name);
    error_set(error, ERROR_ARGUMENT, "CoOp has no split of %s, only of %s; set split: torchvision for %s",
              dataset->reader->name, names.data, dataset->reader->name);
    return ERROR_ARGUMENT;
}

static status no_file(const struct dataset *dataset, const struct coop *coop, struct error *error)
{
    SCOPED(text_free) struct text places = {0};
    for (size_t i = 0; i < COOP_PLACES && coop->places[i].folder != NULL; i++)
        if (i == 0 || strcmp(coop->places[i].folder, coop->places[i - 1].folder) != 0)
            text_add(&places, "%s%s/%s", i > 0 ? " or " : "", coop->places[i].folder, coop->file);
    error_set(error, ERROR_IO,
              "%s: expected CoOp's split of %s, %s, found none; DATASETS.md of the repository KaiyangZhou/CoOp says "
              "where to download it",
              dataset->root, dataset->reader->name, places.data);
    return ERROR_IO;
}

static status choose_place(struct dataset *dataset, const struct coop *coop, const struct coop_place **place,
                           struct error *error)
{
    char file[DATASET_PATH], images[DATASET_PATH];
    *place = NULL;
    for (size_t i = 0; i < COOP_PLACES && coop->places[i].folder != NULL; i++) {
        dataset->folder = coop->places[i].folder;
        TRY(dataset_path(dataset, coop->file, file, error));
        if (!file_exists(file))
            continue;
        *place = &coop->places[i];
        TRY(dataset_path(dataset, coop->places[i].images, images, error));
        if (file_is_directory(images))
            return OK;
    }
    if (*place == NULL)
        return no_file(dataset, coop, error);
    return error_set(error, ERROR_IO, "%s/%s: expected a folder \"%s\" with the images of %s, found none",
                     dataset->root, (*place)->folder, (*place)->images, coop->file);
}

static status add_images(struct dataset *dataset, enum split split, const struct coop_list *list, const char *images,
                         struct error *error)
{
    for (size_t i = 0; i < list->files.count; i++)
        TRY(dataset_add_file(dataset, &dataset->items[split], (size_t)list->labels[i], error, "%s%s%s", images,
                             *images != 0 ? "/" : "", list->files.items[i]));
    return OK;
}

status coop_open(struct dataset *dataset, struct error *error)
{
    const struct coop *coop = dataset->reader->coop;
    const struct coop_place *place;
    char path[DATASET_PATH];
    SCOPED(coop_split_free) struct coop_split split = {0};
    if (coop == NULL)
        return no_split(dataset, error);
    TRY(choose_place(dataset, coop, &place, error));
    TRY(dataset_path(dataset, coop->file, path, error));
    TRY(read_split(&split, path, error));
    for (size_t i = 0; i < split.classes.count; i++)
        dataset_add_class(dataset, split.classes.items[i]);
    TRY(add_images(dataset, SPLIT_TRAIN, &split.train, place->images, error));
    return add_images(dataset, SPLIT_TEST, &split.test, place->images, error);
}
