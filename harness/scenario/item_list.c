#include "harness/scenario/item_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "core/file.h"
#include "core/scope.h"
#include "datasets/image/image.h"

const char *const part_names[SPLITS] = {[SPLIT_TRAIN] = "train", [SPLIT_TEST] = "test"};

static json_t *classes_of(const struct dataset *dataset)
{
    json_t *list = json_array();
    for (size_t c = 0; c < dataset_classes(dataset); c++)
        json_array_append_new(list, json_string(dataset_class_name(dataset, c)));
    return list;
}

/* The prompts of the first template, which training uses. */
static json_t *prompts_of(const struct dataset *dataset)
{
    json_t *list = json_array();
    for (size_t c = 0; c < dataset_classes(dataset); c++) {
        OWNED char *prompt = prompt_format(dataset_template(dataset, 0), dataset_class_name(dataset, c));
        json_array_append_new(list, json_string(prompt));
    }
    return list;
}

static json_t *templates_of(const struct dataset *dataset)
{
    json_t *list = json_array();
    for (size_t t = 0; t < dataset_templates(dataset); t++)
        json_array_append_new(list, json_string(dataset_template(dataset, t)));
    return list;
}

static json_t *number(size_t value)
{
    return json_integer((json_int_t)value);
}

status item_list_task(const struct item_list *list, size_t task, json_t **record, struct error *error)
{
    const struct task *t = &list->data->tasks[task];
    const struct dataset *dataset = t->dataset;
    *record =
        json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "task", number(task), "name", t->settings.name, "classes",
                  classes_of(dataset), "prompts", prompts_of(dataset), "templates", templates_of(dataset),
                  "label_offset", number(t->first_class), "train_items", number(dataset_size(dataset, SPLIT_TRAIN)),
                  "test_items", number(dataset_size(dataset, SPLIT_TEST)));
    return *record != NULL
               ? OK
               : error_set(error, ERROR_FORMAT, "%s: its name is not UTF-8, and JSON can hold no other; rename it",
                           t->settings.name);
}

/* folder/name; or, where files are kept for later runs, folder/STAMP, of the file as it is now. */
static char *images_folder(const struct item_list *list, const struct dataset *dataset, const char *file)
{
    struct file_stamp stamp;
    struct error ignored;
    char digest[DIGEST_SIZE];
    OWNED char *path = path_format("%s/%s", dataset_root(dataset), file), *whole = path_absolute(path);
    bool stamped = list->keeps && file_stamp_read(&stamp, path, &ignored) == OK;
    struct digest sum = digest_begin();
    digest_add(&sum, whole, strlen(whole));
    if (stamped)
        digest_add(&sum, &stamp, sizeof stamp);
    digest_end(&sum, digest);
    return stamped ? path_format("%s/%.16s", list->images, digest) : path_format("%s/%s", list->images, file);
}

static status write_image(const struct item_list *list, const struct dataset *dataset, const struct item *item,
                          struct error *error)
{
    SCOPED(image_free) struct image image = {0};
    if (list->keeps && file_exists(item->path))
        return OK;
    TRY(dataset_read(dataset, item->part, item->index, &image, NULL, error));
    status result = image_write_png_one_of_many(item->path, &image, error);
    if (result == ERROR_IO && !file_exists(item->path)) { /* the folder of the first of many */
        OWNED char *folder = path_parent(item->path);
        result = directory_create(folder, error);
        NEXT(result, image_write_png_one_of_many(item->path, &image, error));
    }
    return result;
}

status item_list_read(const struct item_list *list, size_t task, enum split part, size_t index, struct item *item,
                      struct error *error)
{
    const struct dataset *dataset = list->data->tasks[task].dataset;
    *item = (struct item){.task = task, .index = index, .part = part, .label = dataset_label(dataset, part, index)};
    const char *file = dataset_item_file(dataset, part, index, &item->record);
    if (item->record < 0 || list->images == NULL) {
        OWNED char *path = path_format("%s/%s", dataset_root(dataset), file);
        item->path = path_absolute(path);
        return OK;
    }
    OWNED char *folder = images_folder(list, dataset, file),
               *path = path_format("%s/%06" PRId64 ".png", folder, item->record);
    item->path = path_absolute(path);
    item->record = -1;
    status result = write_image(list, dataset, item, error);
    if (result != OK)
        item_free(item);
    return result;
}

void item_free(struct item *item)
{
    free(item->path);
    item->path = NULL;
}

json_t *item_record(const struct item *item)
{
    json_t *record = json_pack("{s:o, s:s, s:o, s:s, s:i}", "task", number(item->task), "part", part_names[item->part],
                               "item", number(item->index), "path", item->path, "label", item->label);
    if (record != NULL && item->record >= 0)
        json_object_set_new(record, "record", json_integer(item->record));
    return record;
}

status item_list_write_record(json_t *record, FILE *stream, const char *name, struct error *error)
{
    bool written = json_dumpf(record, stream, JSON_COMPACT) == 0 && fputc('\n', stream) != EOF;
    return written ? OK : error_errno(error, errno, "%s: cannot be written", name);
}
