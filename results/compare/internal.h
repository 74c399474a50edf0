/* Shared by the files of a comparison; other folders include compare.h alone.
 *
 * Parts of SQL files, in the order of compare.c, lead from the table `chosen` to the answer by temporary tables.
 * words.c writes the results in words.
 */
#pragma once

#include "results/compare.h"
#include "results/store/store_internal.h"

/* A comparison in the making. */
struct compare {
    struct store *store;
    const struct comparison_request *request;
    struct comparison *result;
    struct text metrics; /* "transfer|last" */
};

/* Fills `words`. */
status compare_say(const struct compare *c, struct error *error);
