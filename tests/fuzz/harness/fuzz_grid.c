/* The axes of a sweep. Whatever is one has the combinations that it says, each with overrides. */
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#include "harness/run/settings.h"
#include "harness/sweep/grid.h"
#include "tests/fuzz/input.h"

static void check_combination(const struct grid *grid, size_t combination)
{
    struct strings overrides = {0};
    grid_overrides(grid, combination, &overrides);
    assert(overrides.count == grid->count);
    for (size_t i = 0; i < grid->count; i++) {
        const char *value = grid_value(grid, i, combination), *equals = strchr(overrides.items[i], '=');
        assert(equals != NULL && (value == NULL || strcmp(equals + 1, value) == 0));
    }
    strings_free(&overrides);
}

static void parse(const struct words *words, enum grid_values values)
{
    struct grid grid;
    if (grid_parse(&grid, (const char *const *)words->items, words->count, values, settings_sections, &fuzz_error) !=
        OK)
        return;
    size_t combinations = 1;
    for (size_t i = 0; i < grid.count; i++)
        combinations *= grid.axes[i].seeds ? 1 : grid.axes[i].values.count;
    assert(combinations == grid.combinations && combinations > 0);
    check_combination(&grid, 0);
    check_combination(&grid, combinations - 1);
    grid_free(&grid);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct words words = input_words(data, size);
    parse(&words, GRID_EXPAND);
    parse(&words, GRID_LITERAL);
    free(words.text);
    return 0;
}
