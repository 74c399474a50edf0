/* What a run was told, key by key, read from the suite text that is stored with it.
 *
 *     struct suite_values values;
 *     TRY(suite_values_read(&values, suite_text, error));
 *     puts(suite_values_find(&values, "merge.every"));              // "50"; "tasks.mnist.learning_rate" likewise
 *     suite_values_free(&values);
 *
 * Keys are the paths of the YAML's mappings, joined by dots, in the order of their bytes. A list is one value, "[1, 2]".
 */
#ifndef MTIL_RESULTS_QUERY_SUITE_VALUES_H
#define MTIL_RESULTS_QUERY_SUITE_VALUES_H

#include <stddef.h>

#include "core/status.h"

struct suite_value {
    char *key, *value;
};

struct suite_values {
    size_t count;
    struct suite_value *value; /* by key */
};

/* The caller frees, after a failure too. ERROR_FORMAT, with the line, for what is no mapping. */
status suite_values_read(struct suite_values *values, const char *text, struct error *error);
void suite_values_free(struct suite_values *values);

/* Adds the key, or gives it another value. */
status suite_values_set(struct suite_values *values, const char *key, const char *value, struct error *error);

const char *suite_values_find(const struct suite_values *values, const char *key); /* NULL: there is none */

/* Calls take for every key whose values differ, in order; NULL: one of the two has none. */
typedef void suite_difference(void *context, const char *key, const char *a, const char *b);
void suite_values_compare(const struct suite_values *a, const struct suite_values *b, suite_difference *take,
                          void *context);

#endif
