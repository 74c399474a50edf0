/* Pickles. Whatever opens, and whatever refers to what, all its values lie in the bytes. */
#include "tests/fuzz/target.h"

#include "core/pickle.h"

enum { DEPTH_MOST = 12 };

/* Lists may hold themselves: looks at no more than *left values. */
static void look(const struct pickle_value *value, int depth, size_t *left)
{
    if (value == NULL || depth > DEPTH_MOST || *left == 0)
        return;
    --*left;
    if (value->kind == PICKLE_STRING)
        fuzz_touch(value->string.bytes, value->string.size);
    if (value->kind == PICKLE_LIST || value->kind == PICKLE_DICT)
        for (size_t i = 0; i < value->list.count; i++)
            look(value->list.items[i], depth + 1, left);
    if (value->kind == PICKLE_CALL) {
        look(value->call.arguments, depth + 1, left);
        look(value->call.state, depth + 1, left);
    }
    if (value->kind == PICKLE_PERSISTENT)
        look(value->id, depth + 1, left);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    static const struct pickle_global globals[] = {{"numpy.core.multiarray", "_reconstruct", PICKLE_CALL},
                                                   {"numpy", NULL, PICKLE_CALL},
                                                   {"collections", "OrderedDict", PICKLE_DICT}};
    static const struct pickle_rules rules = {
        .globals = globals, .count = sizeof globals / sizeof *globals, .persistent = true, .needs = ""};
    struct pickle *pickle;
    size_t left = 10000;
    if (pickle_parse(&pickle, "input", data, size, &rules, &fuzz_error) == OK) {
        look(pickle_root(pickle), 0, &left);
        pickle_close(pickle);
    }
    return 0;
}
