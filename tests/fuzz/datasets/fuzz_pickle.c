/* Pickles. Whatever opens, and whatever refers to what, all its values lie in the file. */
#include "tests/fuzz/target.h"

#include "datasets/formats/pickle.h"
#include "tests/fuzz/input_file.h"

enum { DEPTH_MOST = 12 };

/* Lists may hold themselves: looks at no more than *left values. */
static void look(const struct pickle_value *value, int depth, size_t *left)
{
    if (value == NULL || depth > DEPTH_MOST || *left == 0)
        return;
    --*left;
    if (value->kind == PICKLE_STRING)
        fuzz_touch(value->string.bytes, value->string.size);
    if (value->kind == PICKLE_ARRAY && value->array.bytes != NULL)
        fuzz_touch(value->array.bytes, value->array.rows * value->array.columns);
    if (value->kind == PICKLE_LIST || value->kind == PICKLE_DICT)
        for (size_t i = 0; i < value->list.count; i++)
            look(value->list.items[i], depth + 1, left);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    static const char *const keys[] = {"data", "labels", "fine_labels", "fine_label_names", "a", ""};
    struct input_file file;
    struct pickle *pickle;
    struct error error;
    size_t left = 10000;
    input_file_open(&file, data, size);
    if (pickle_open(&pickle, file.path, &error) == OK) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            look(pickle_find(pickle, keys[i]), 0, &left);
        pickle_close(pickle);
    }
    input_file_close(&file);
    return 0;
}
