/* Whether two databases have the same rows of a run, table by table of the list. */
#pragma once

#include "results/store/run_rows.h"
#include "results/store/store_internal.h"
#include "tests/test.h"

/* In the tables that training fills, which in a sample have rows. Made-up times are the same, too. */
static inline void assert_same_run(struct store *one, int64_t first, struct store *other, int64_t second)
{
    struct run_rows a = {.database = one->database, .name = "one"}, b = {.database = other->database, .name = "other"};
    for (size_t i = 0; i < STORE_TABLES; i++) {
        struct row_difference difference = {0};
        if (store_tables[i].local && !store_tables[i].after)
            continue;
        assert_ok(run_rows_compare_table(&a, first, &b, second, i, &difference, &error));
        if (difference.contradiction.size || difference.only_first.size || difference.only_second.size)
            fail_msg("%s: %s%s%s", store_tables[i].name, difference.contradiction.data, difference.only_first.data,
                     difference.only_second.data);
        row_difference_free(&difference);
    }
    run_rows_close(&a);
    run_rows_close(&b);
}
