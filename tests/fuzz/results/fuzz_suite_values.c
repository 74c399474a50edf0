/* The suite texts that a database holds. What is read is in order, and found. */
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#include "results/query/suite_values.h"

static void count_difference(void *context, const char *key, const char *a, const char *b)
{
    (void)key, (void)a, (void)b;
    ++*(size_t *)context;
}

static int check(const struct suite_values *values)
{
    size_t differences = 0;
    suite_values_compare(values, values, count_difference, &differences);
    int failed = differences != 0;
    for (size_t i = 0; i < values->count; i++) {
        failed |= i > 0 && strcmp(values->value[i - 1].key, values->value[i].key) > 0;
        failed |= suite_values_find(values, values->value[i].key) == NULL;
    }
    return failed;
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct suite_values values;
    struct error error;
    char *text = strndup((const char *)data, size);
    if (text == NULL)
        abort();
    int failed = suite_values_read(&values, text, &error) == OK && check(&values);
    suite_values_free(&values);
    free(text);
    return failed;
}
