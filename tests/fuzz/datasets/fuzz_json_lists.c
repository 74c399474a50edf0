/* Food-101's lists. What opens has a key for every value. */
#include "tests/fuzz/target.h"

#include "datasets/formats/json.h"
#include "tests/fuzz/input.h"

int fuzz_target(const uint8_t *data, size_t size)
{
    struct json_lists lists;
    if (json_lists_read(&lists, input_file(data, size), &fuzz_error) == OK) {
        for (size_t i = 0; i < lists.values.count; i++)
            assert(lists.of[i] < lists.keys.count && lists.values.items[i] != NULL);
        json_lists_free(&lists);
    }
    return 0;
}
