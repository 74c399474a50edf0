/* Compares the rows of a repeated run with those of the first.
 *
 *     struct repeat repeat = {.first = store, .first_run = 3, .second = other, .second_run = 1};
 *     TRY(repeat_compare(&repeat, &table, error));           // a row per table: rows, and the first that differs
 *     … repeat.agrees …
 *     table_free(&table);
 */
#pragma once

#include "results/store.h"
#include "results/table.h"

struct repeat {
    struct store *first, *second;
    int64_t first_run, second_run;
    bool agrees;          /* answered */
    struct text machines; /* differences of inputs and machines, in words; empty: none */
};

/* Tables with clock and machine are not compared. The caller frees table and machines, after a failure too. */
status repeat_compare(struct repeat *repeat, struct table *table, struct error *error);
