/* CoOp's split files and Food-101's lists. What opens has a name for every label, a key for every value and no path that leads
 * out. */
#include "tests/fuzz/target.h"

#include <string.h>

#include "datasets/formats/json.h"
#include "datasets/split/coop.h"
#include "tests/fuzz/input.h"

static void check_list(const struct coop_split *split, const struct coop_list *list)
{
    for (size_t i = 0; i < list->files.count; i++)
        assert(list->labels[i] >= 0 && (size_t)list->labels[i] < split->classes.count &&
               list->files.items[i][0] != '/' && strstr(list->files.items[i], "/../") == NULL);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct coop_split split;
    struct json_lists lists;
    if (coop_split_parse(&split, data, size, "input", &fuzz_error) == OK) {
        check_list(&split, &split.train);
        check_list(&split, &split.test);
        for (size_t i = 0; i < split.classes.count; i++)
            assert(split.classes.items[i] != NULL && split.classes.items[i][0] != 0);
        coop_split_free(&split);
    }
    if (json_lists_read(&lists, input_file(data, size), &fuzz_error) == OK) {
        for (size_t i = 0; i < lists.values.count; i++)
            assert(lists.of[i] < lists.keys.count && lists.values.items[i] != NULL);
        json_lists_free(&lists);
    }
    return 0;
}
