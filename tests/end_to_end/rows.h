/* The rows of a results database as text, to be compared with those of another run.
 *
 *     struct text rows = {0};
 *     rows_read(path, &rows);              // every digit of every value, but for clocks, machines and paths
 *     text_free(&rows);
 */
#pragma once

#include <stdbool.h>

#include "tests/end_to_end/workshop.h"

void rows_read(const char *path, struct text *rows);

/* The answer to a query, values separated by commas, a line per row. */
void rows_query(const char *path, const char *sql, struct text *rows);

/* A database of the workshop's has this answer. */
void rows_expect(const struct workshop *workshop, const char *database, const char *sql, const char *expected);

/* Two databases hold the same computed numbers, whatever the order in which runs came to them. */
void rows_expect_alike(const struct workshop *workshop, const char *database, const char *other);

/* Whether a program could write the database now. */
bool rows_may_be_written(const struct workshop *workshop, const char *database);
