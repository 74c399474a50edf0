/* The data that a run reads, as records of JSON: a task with its classes and prompts, and its items in the order of
 * the run's own lists.
 *
 *     const struct item_list list = {.data = &data, .images = "png"};
 *     json_t *record;
 *     TRY(item_list_task(&list, k, &record, error));                    // {"task": 0, "name": "mnist", "classes": […], …}
 *     struct item item;
 *     TRY(item_list_read(&list, k, SPLIT_TRAIN, i, &item, error));      // item.path, item.label …
 *     record = item_record(&item);                                     // {"task": 0, "part": "train", "item": 0, …}
 *     item_free(&item);
 */
#pragma once

#include <jansson.h>

#include "harness/scenario/data.h"

struct item_list {
    const struct data *data;
    const char *images; /* folder for PNG files of images that a larger file holds; NULL: none are written */
    bool keeps;         /* a PNG file that is there is kept */
};

struct item {
    size_t task, index;
    enum split part;
    char *path;     /* absolute */
    int64_t record; /* the row of a file that holds many images; −1: the file is the image */
    int label;      /* within the task */
};

extern const char *const part_names[SPLITS]; /* "train", "test" */

/* The caller releases the record. ERROR_FORMAT: a name is not UTF-8. */
status item_list_task(const struct item_list *list, size_t task, json_t **record, struct error *error);

/* Writes the item's PNG file, if it needs one. The caller frees the item. */
status item_list_read(const struct item_list *list, size_t task, enum split part, size_t index, struct item *item,
                      struct error *error);
void item_free(struct item *item);
json_t *item_record(const struct item *item);

/* One record a line. */
status item_list_write_record(json_t *record, FILE *stream, const char *name, struct error *error);
