/* The rows of a results database of the workshop's as text, to be compared with those of another run.
 *
 *     struct text rows = {0};
 *     rows_read("results.db", &rows);      // every digit of every value, but for clocks, machines and paths
 *     text_free(&rows);
 */
#pragma once

#include "tests/end_to_end/workshop.h"

void rows_read(const char *name, struct text *rows);

/* The answer to a query, values separated by commas, a line per row. */
void rows_query(const char *name, const char *sql, struct text *rows);
