/* The axes of a sweep, and their combinations.
 *
 *     struct grid grid;
 *     const char *const words[] = {"policy=none,most_used", "merge.every=50,100", "seed=1..5"};
 *     TRY(grid_parse(&grid, words, 3, GRID_EXPAND, settings_sections, error));
 *     for (size_t c = 0; c < grid.combinations; c++)             // 4: seeds are runs of a combination, no combinations
 *         grid_value(&grid, 1, c) …                              // "50" or "100"
 *     grid_free(&grid);
 *
 * An axis is KEY=VALUE,VALUE… or KEY=FIRST..LAST (whole numbers, both included), also mixed: 1..3,10. The key is a
 * suite's (merge.policy) or its last part if that is unambiguous (policy). The items of a value that is itself a list
 * are separated by spaces: "data.order=mnist dtd,dtd mnist" are two orders.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "harness/config/suite.h"

struct grid_axis {
    char *name, *key; /* as written, "policy", and as in suites, "merge.policy" */
    struct strings values;
    bool seeds; /* run.seeds: every combination has all its values */
};

struct grid {
    struct grid_axis *axes;
    size_t count;
    size_t combinations; /* of all axes but the seeds'; 1 without any */
};

enum grid_values {
    GRID_EXPAND, /* commas and ranges separate values */
    GRID_LITERAL /* one value each, taken literally */
};

/* Reads one axis per word. Unknown keys, empty values and ranges, repeated keys or values, and more than 10,000
 * combinations are ERROR_ARGUMENT; values are checked by the suite. The caller frees the grid. */
status grid_parse(struct grid *grid, const char *const *words, size_t count, enum grid_values values,
                  const struct suite_section *sections, struct error *error);

/* Adds an axis before the others, which varies slowest: the rows of the suite. Nothing without rows, or where an axis
 * chooses them. */
status grid_add_rows(struct grid *grid, const struct suite_rows *rows, struct error *error);
void grid_free(struct grid *grid); /* zeros are allowed */

/* The value of an axis in a combination; the last axis varies fastest. NULL for the seeds' axis. Borrowed. */
const char *grid_value(const struct grid *grid, size_t axis, size_t combination);

/* Appends the combination as overrides of the suite, "merge.policy=none", one per axis; that of the seeds has all of
 * them. */
void grid_overrides(const struct grid *grid, size_t combination, struct strings *overrides);
