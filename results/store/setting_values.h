/* The settings of a run, key by key, from the table `settings`.
 *
 *     struct setting_values values;
 *     TRY(setting_values_read(&values, store, run, error));
 *     puts(setting_values_find(&values, "merge.every"));              // "50"; "tasks.mnist.learning_rate" likewise
 *     setting_values_free(&values);
 *
 * Keys are in the order of their bytes. A value is text here: "50", "true", "[1, 2]".
 */
#ifndef MTIL_RESULTS_STORE_SETTING_VALUES_H
#define MTIL_RESULTS_STORE_SETTING_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct store;

struct setting_value {
    char *key, *value;
};

struct setting_values {
    size_t count;
    struct setting_value *value; /* by key */
};

/* The caller frees, after a failure too. */
status setting_values_read(struct setting_values *values, struct store *store, int64_t run, struct error *error);
void setting_values_free(struct setting_values *values);

/* Adds the key, or gives it another value. */
status setting_values_set(struct setting_values *values, const char *key, const char *value, struct error *error);

const char *setting_values_find(const struct setting_values *values, const char *key); /* NULL: there is none */

/* Calls take for every key whose values differ, in order; a or b is NULL where it has no value. */
typedef void setting_difference(void *context, const char *key, const char *a, const char *b);
void setting_values_compare(const struct setting_values *a, const struct setting_values *b, setting_difference *take,
                            void *context);

#endif
