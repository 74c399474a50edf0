/* The results per test image in SQL: a table of them, unpacked from `per_image` and `test_labels`,
 *
 *     SELECT truth, count(*), sum("right") FROM images(1, 0, 10) GROUP BY truth;    -- run, task, after_task
 *
 * and the function image_counts, with which `verify` counts what contradicts something else in them.
 *
 * Columns: image (its number in the test set), truth (its class; null: not stored), right (0, 1), predicted and router
 * (null where only bits are kept). A cell that was not kept has no rows; a damaged one is an error.
 */
#pragma once

struct sqlite3;

/* Returns SQLite's code. */
int images_table_register(struct sqlite3 *connection);
