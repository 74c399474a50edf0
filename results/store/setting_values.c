#include "results/store/setting_values.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "results/store/store_internal.h"

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct setting_value *)a)->key, ((const struct setting_value *)b)->key);
}

static status insert(struct setting_values *values, size_t at, const char *key, const char *value, struct error *error)
{
    struct setting_value *larger = realloc(values->value, (values->count + 1) * sizeof *larger),
                         made = {.key = strdup(key), .value = strdup(value)};
    if (larger != NULL)
        values->value = larger;
    if (larger == NULL || made.key == NULL || made.value == NULL) {
        free(made.key);
        free(made.value);
        return error_set(error, ERROR_MEMORY, "settings: out of memory for the values of a run");
    }
    memmove(larger + at + 1, larger + at, (values->count++ - at) * sizeof *larger);
    larger[at] = made;
    return OK;
}

static status take_value(void *values, struct statement *row, struct error *error)
{
    struct value value = statement_value(row, 1);
    struct text real = {0};
    if (value.kind == VALUE_REAL)
        text_add_real(&real, value.real);
    status result = insert(values, ((struct setting_values *)values)->count, statement_text(row, 0),
                           real.data ? real.data : statement_text(row, 1), error);
    text_free(&real);
    return result;
}

status setting_values_read(struct setting_values *values, struct store *store, int64_t run, struct error *error)
{
    *values = (struct setting_values){0};
    return database_each(store->database, "SELECT key, value FROM settings WHERE run = ?1 ORDER BY key",
                         VALUES(value_integer(run)), take_value, values, error);
}

void setting_values_free(struct setting_values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        free(values->value[i].key);
        free(values->value[i].value);
    }
    free(values->value);
    *values = (struct setting_values){0};
}

status setting_values_set(struct setting_values *values, const char *key, const char *value, struct error *error)
{
    size_t at = 0;
    while (at < values->count && strcmp(values->value[at].key, key) < 0)
        at++;
    if (at == values->count || strcmp(values->value[at].key, key) != 0)
        return insert(values, at, key, value, error);
    char *copy = strdup(value);
    if (copy == NULL)
        return error_set(error, ERROR_MEMORY, "settings: out of memory for the values of a run");
    free(values->value[at].value);
    values->value[at].value = copy;
    return OK;
}

const char *setting_values_find(const struct setting_values *values, const char *key)
{
    struct setting_value wanted = {.key = (char *)key};
    const struct setting_value *found =
        values->count ? bsearch(&wanted, values->value, values->count, sizeof wanted, compare_keys) : NULL;
    return found != NULL ? found->value : NULL;
}

void setting_values_compare(const struct setting_values *a, const struct setting_values *b, setting_difference *take,
                            void *context)
{
    size_t i = 0, j = 0;
    while (i < a->count || j < b->count) {
        int order = i == a->count ? 1 : j == b->count ? -1 : compare_keys(&a->value[i], &b->value[j]);
        const struct setting_value *x = order <= 0 ? &a->value[i++] : NULL, *y = order >= 0 ? &b->value[j++] : NULL;
        if (x == NULL || y == NULL || strcmp(x->value, y->value) != 0)
            take(context, x != NULL ? x->key : y->key, x != NULL ? x->value : NULL, y != NULL ? y->value : NULL);
    }
}
