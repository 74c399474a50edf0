#include "harness/sweep/grid.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/config/suite.h"

enum { AXES_MOST = 63, VALUES_MOST = 10000, COMBINATIONS_MOST = 10000 };

static const char seeds_key[] = "run.seeds";

/* --- Keys --- */

/* The full key of a name; a name with a dot is already one. */
static status find_key(const char *name, const struct suite_section *sections, char **key, struct error *error)
{
    *key = NULL;
    if (strchr(name, '.') == NULL) {
        TRY(suite_key_find(key, sections, name, error));
        if (*key != NULL)
            return OK;
        size_t distance;
        OWNED char *near = suite_key_near(sections, name, &distance);
        return error_set(
            error, ERROR_ARGUMENT,
            "command line: unknown key \"%s\"%s%s%s; expected a key of the suite, as in merge.policy=none; mtil "
            "list keys shows them",
            name, near != NULL ? " (did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?)" : "");
    }
    *key = xstrdup(name);
    return OK;
}

/* --- Values --- */

static status add_value(struct grid_axis *axis, const char *text, size_t length, struct error *error)
{
    if (length == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: %s: expected values separated by commas, found an empty one", axis->name);
    if (axis->values.count == VALUES_MOST)
        return error_set(error, ERROR_ARGUMENT, "command line: %s: expected at most %d values, found more", axis->name,
                         VALUES_MOST);
    strings_add(&axis->values, text, length);
    return OK;
}

static status refuse_twice(const struct grid_axis *axis, struct error *error)
{
    char **values = axis->values.items;
    for (size_t i = 1; i < axis->values.count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(values[k], values[i]) == 0)
                return error_set(error, ERROR_ARGUMENT, "command line: %s: the value %s is repeated", axis->name,
                                 values[i]);
    return OK;
}

/* "1..5": true with both ends; "../data" is an ordinary value. */
static bool parse_range(const char *text, size_t length, int64_t *first, int64_t *last)
{
    char part[64];
    if (length >= sizeof part)
        return false;
    memcpy(part, text, length);
    part[length] = 0;
    char *dots = strstr(part, "..");
    if (dots == NULL || dots == part || isspace((unsigned char)*part))
        return false;
    *dots = 0;
    return parse_integer(part, first) && parse_integer(dots + 2, last);
}

static status add_values(struct grid_axis *axis, const char *text, size_t length, struct error *error)
{
    int64_t first, last;
    if (!parse_range(text, length, &first, &last))
        return add_value(axis, text, length, error);
    if (first > last)
        return error_set(error, ERROR_ARGUMENT, "command line: %s: expected a range from low to high, found %.*s",
                         axis->name, (int)length, text);
    if ((uint64_t)last - (uint64_t)first >= VALUES_MOST)
        return error_set(error, ERROR_ARGUMENT, "command line: %s: expected at most %d values, found %.*s", axis->name,
                         VALUES_MOST, (int)length, text);
    for (int64_t i = first;; i++) {
        char number[32];
        int digits = snprintf(number, sizeof number, "%lld", (long long)i);
        TRY(add_value(axis, number, (size_t)digits, error));
        if (i == last)
            return OK;
    }
}

static status split_values(struct grid_axis *axis, const char *text, struct error *error)
{
    for (;;) {
        size_t length = strcspn(text, ",");
        TRY(add_values(axis, text, length, error));
        if (text[length] == 0)
            return refuse_twice(axis, error);
        text += length + 1;
    }
}

/* --- The grid --- */

static void free_axis(struct grid_axis *axis)
{
    strings_free(&axis->values);
    free(axis->name);
    free(axis->key);
}

static status read_axis(struct grid *grid, const char *word, enum grid_values values,
                        const struct suite_section *sections, struct error *error)
{
    struct grid_axis *axis = &grid->axes[grid->count++];
    const char *equals = strchr(word, '=');
    if (equals == NULL || equals == word)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: expected KEY=VALUE,VALUE…, for example seed=1..5, found \"%s\"", word);
    axis->name = xstrndup(word, (size_t)(equals - word));
    TRY(find_key(axis->name, sections, &axis->key, error));
    for (size_t i = 0; i + 1 < grid->count; i++)
        if (strcmp(grid->axes[i].key, axis->key) == 0)
            return error_set(error, ERROR_ARGUMENT,
                             "command line: %s is repeated; expected all its values together, as in %s=1,2", axis->key,
                             axis->name);
    axis->seeds = strcmp(axis->key, seeds_key) == 0;
    TRY(values == GRID_EXPAND ? split_values(axis, equals + 1, error)
                              : add_value(axis, equals + 1, strlen(equals + 1), error));
    if (!axis->seeds)
        grid->combinations *= axis->values.count;
    if (grid->combinations > COMBINATIONS_MOST)
        return error_set(error, ERROR_ARGUMENT, "command line: expected at most %d combinations, found more",
                         COMBINATIONS_MOST);
    return OK;
}

status grid_parse(struct grid *grid, const char *const *words, size_t count, enum grid_values values,
                  const struct suite_section *sections, struct error *error)
{
    *grid = (struct grid){.combinations = 1};
    if (count > AXES_MOST)
        return error_set(error, ERROR_ARGUMENT, "command line: expected at most %d keys, found %zu", AXES_MOST, count);
    grid->axes = xcalloc(count + 1, sizeof *grid->axes); /* room for the rows */
    status result = OK;
    for (size_t i = 0; result == OK && i < count; i++)
        result = read_axis(grid, words[i], values, sections, error);
    if (result != OK)
        grid_free(grid);
    return result;
}

status grid_add_rows(struct grid *grid, const struct suite_rows *rows, struct error *error)
{
    if (rows->names.count == 0)
        return OK;
    for (size_t i = 0; i < grid->count; i++)
        if (strcmp(grid->axes[i].key, rows->key) == 0)
            return OK;
    memmove(grid->axes + 1, grid->axes, grid->count++ * sizeof *grid->axes);
    grid->axes[0] = (struct grid_axis){.name = xstrdup("row"), .key = xstrdup(rows->key)};
    for (size_t i = 0; i < rows->names.count; i++)
        TRY(add_value(&grid->axes[0], rows->names.items[i], strlen(rows->names.items[i]), error));
    if ((grid->combinations *= rows->names.count) > COMBINATIONS_MOST)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: expected at most %d combinations, found %zu with the rows of the suite",
                         COMBINATIONS_MOST, grid->combinations);
    return OK;
}

void grid_free(struct grid *grid)
{
    for (size_t i = 0; i < grid->count; i++)
        free_axis(&grid->axes[i]);
    free(grid->axes);
    *grid = (struct grid){0};
}

const char *grid_value(const struct grid *grid, size_t axis, size_t combination)
{
    if (grid->axes[axis].seeds)
        return NULL;
    for (size_t i = grid->count - 1; i > axis; i--)
        if (!grid->axes[i].seeds)
            combination /= grid->axes[i].values.count;
    return grid->axes[axis].values.items[combination % grid->axes[axis].values.count];
}

static void write_override(struct text *out, const struct grid *grid, size_t axis, size_t combination)
{
    const struct grid_axis *a = &grid->axes[axis];
    text_add(out, "%s=", a->key);
    for (size_t i = 0; a->seeds && i < a->values.count; i++)
        text_add(out, "%s%s", i > 0 ? "," : "", a->values.items[i]);
    if (!a->seeds)
        text_add(out, "%s", grid_value(grid, axis, combination));
}

void grid_overrides(const struct grid *grid, size_t combination, struct strings *overrides)
{
    for (size_t i = 0; i < grid->count; i++) {
        SCOPED(text_free) struct text text = {0};
        write_override(&text, grid, i, combination);
        strings_add(overrides, text.data, text.size);
    }
}
