/* The statistics of this folder as functions of SQL, for every statement of a connection (METRICS.md lists them).
 *
 *     SELECT policy, mean(last), half_width(last) FROM runs JOIN metrics USING (run) GROUP BY policy;
 *     SELECT permutation_p(b.last - a.last) FROM …;
 *
 * Aggregates leave out nulls and sort their values first, so that the order of rows does not change a bit. What is
 * undefined, such as the deviation of one value, is null.
 */
#pragma once

struct sqlite3;

/* Returns SQLite's code. */
int functions_register(struct sqlite3 *connection);
