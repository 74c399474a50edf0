/* How the folders of results/ choose runs; other folders include query.h alone.
 *
 *     TRY(query_choose(store, filter, error));
 *     TRY(statement_open(&statement, store->database, "SELECT run FROM chosen ORDER BY run", error));
 */
#pragma once

#include "results/query.h"
#include "results/store/database.h"

/* Fills the connection's table `chosen` with the rows of `runs` that the filter chooses, and empties `asked`; its view `dimension`
 * has the words of --by. */
status query_choose(struct store *store, const struct query_filter *filter, struct error *error);

/* Fills the table `labels` (hash, run, label): the names of the configurations of `chosen` in every table and
 * figure. */
status query_label(struct store *store, struct error *error);

/* The settings of runs, with the contents of their inputs as values among them, so that a comparison of settings
 * compares contents. The same weights in two places are equal; two files that were at one path in turn are not.
 *
 *     TRY(query_contents(store, "SELECT configuration, run FROM configuration", error));
 *
 * fills the temporary table run_values (place, key, value, content) for the runs of a query, whose first column is their
 * place. Values are text: "50", "true", "[1, 2]". Where content is 1, the value names what an input holds: model.weights,
 * model.configuration (heads and activation), model.vocabulary, data.root (the training images), prompts, test images.
 * Where no content is recorded, it says so. */
status query_contents(struct store *store, const char *runs, struct error *error);

/* ERROR_ARGUMENT where the filter chooses no run. */
status query_check_chosen(struct store *store, const struct query_filter *filter, struct error *error);

/* The rows of one statement of a question, as they come. */
status query_rows(struct store *store, const char *sql, const struct query_filter *filter, struct table *table,
                  struct error *error);

/* Rows [first, end) as the head of the question shows them; filter: the filter of the question, or NULL. */
struct question;
status query_show(const struct question *question, const struct table *rows, size_t first, size_t end,
                  const struct query_filter *filter, struct table *table, struct error *error);

size_t query_column(const struct table *rows, const char *name); /* SIZE_MAX: there is none */
bool query_same_cell(const struct table_cell *a, const struct table_cell *b);

/* Adds a setting of --by, or those behind a word, to `asked`. ERROR_ARGUMENT when no run has any. */
status query_ask_key(struct store *store, const char *key, struct error *error);
