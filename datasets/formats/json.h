/* JSON lists: an object whose keys are classes and whose values are arrays of strings, as Food-101's meta/train.json.
 *
 *     struct json_lists lists;
 *     TRY(json_lists_read(&lists, "food-101/meta/train.json", error));
 *     lists.keys.items[lists.of[i]], lists.values.items[i]                    // in the order of the file
 *     json_lists_free(&lists);
 */
#pragma once

#include <stdint.h>

#include "core/json.h"
#include "datasets/formats/strings.h"

struct json_lists {
    struct strings keys;   /* in the order of the file */
    struct strings values; /* of all keys, in the order of the file */
    uint32_t *of;          /* [values.count]: position of a value's key in keys */
};

status json_lists_read(struct json_lists *lists, const char *path, struct error *error);
void json_lists_free(struct json_lists *lists);
