/* Numbers that papers print, beside a user's own (results/published/, each row with its source).
 *
 *     TRY(published_attach(store, error));
 *     TRY(query_sql(store, "SELECT source, method, dataset, accuracy FROM published WHERE metric = 'last'", &table, error));
 *
 * They are tables of the connection, `published` and `published_matrix`, and never rows of `runs` or `evaluations`: no
 * metric, leaderboard or comparison counts them. The file is not touched.
 */
#ifndef MTIL_RESULTS_QUERY_PUBLISHED_H
#define MTIL_RESULTS_QUERY_PUBLISHED_H

#include "core/status.h"
#include "results/store.h"

/* Repeated calls do nothing. */
status published_attach(struct store *store, struct error *error);

#endif
