/* How the queries of this folder choose runs; other folders include query.h alone.
 *
 *     TRY(statement_open(&statement, store->database, CHOSEN "SELECT run FROM chosen ORDER BY run", error));
 *     TRY(query_bind_filter(statement, filter, error));
 */
#ifndef MTIL_RESULTS_QUERY_INTERNAL_H
#define MTIL_RESULTS_QUERY_INTERNAL_H

#include "results/query.h"
#include "results/store/database.h"

/* The settings that a filter asks for; words without "=" continue the list before them. Numbers match in any notation,
 * lists with commas, blanks or both between their words. */
#define WANTED                                                                                                         \
    "WITH words(place, word) AS (SELECT key, value FROM json_each('[' || replace(json_quote(?13), ',', '\",\"') || "   \
    "']') "                                                                                                            \
    "WHERE ?13 IS NOT NULL), conditions(condition) AS (SELECT group_concat(word, ',') FROM (SELECT word, (SELECT "     \
    "max(place) FROM words AS first WHERE first.place <= words.place AND instr(first.word, '=')) AS begin FROM words " \
    "ORDER BY place) GROUP BY begin), "                                                                                \
    "wanted(key, value) AS MATERIALIZED (SELECT trim(substr(condition, 1, instr(condition, '=') - 1)), "               \
    "trim(substr(condition, instr(condition, '=') + 1)) FROM conditions)"
#define WORDS_OF(list)                                                                                                 \
    "trim(replace(replace(replace(replace(replace(" list ", '[', ''), ']', ''), ',', ' '), '  ', ' '), '  ', ' '))"
#define HAS_WANTED                                                                                                     \
    "settings.key = wanted.key AND (settings.value = wanted.value OR "                                                 \
    "settings.value = iif(json_valid(wanted.value), json_extract(wanted.value, '$'), NULL) OR "                        \
    "settings.type = 'list' AND " WORDS_OF("settings.value") " = " WORDS_OF("wanted.value") ")"

/* The beginning of a statement that reads the runs of a filter; parameters ?1 to ?13 by query_bind_filter. */
#define CHOSEN                                                                                                         \
    WANTED                                                                                                             \
    ", chosen AS (SELECT * FROM runs WHERE (?1 IS NULL OR run = ?1) AND (?2 IS NULL OR suite = ?2)"                    \
    " AND (?3 IS NULL OR setting = ?3) AND (?4 IS NULL OR method = ?4) AND (?5 IS NULL OR policy = ?5)"                \
    " AND (?6 IS NULL OR selector = ?6) AND (?7 IS NULL OR status = ?7) AND (?8 IS NULL OR seed = ?8)"                 \
    " AND (?9 IS NULL OR started >= ?9) AND (?10 IS NULL OR started < ?10)"                                            \
    " AND (?11 IS NULL OR EXISTS (SELECT 1 FROM tasks WHERE tasks.run = runs.run AND name = ?11))"                     \
    " AND NOT EXISTS (SELECT 1 FROM wanted WHERE NOT EXISTS (SELECT 1 FROM settings WHERE settings.run = runs.run"     \
    " AND " HAS_WANTED "))) "

typedef status query_function(struct store *store, const struct query_filter *filter, struct table *table,
                              struct error *error);

/* The named queries that are more than a SELECT. */
query_function query_runs, query_digest, query_matrix, query_merges, query_paper_table, query_paper_table_classifiers,
    query_routers, query_classes, query_confusion, query_class_experts;

/* The answer of SQL that begins with CHOSEN, in the columns that it has. */
status query_answer_sql(struct store *store, const char *sql, const struct query_filter *filter, struct table *table,
                        struct error *error);

/* ERROR_ARGUMENT where the filter chooses no run. */
status query_check_chosen(struct store *store, const struct query_filter *filter, struct error *error);

/* Adds a column per setting of `by` (NULL: none), for runs that share them. */
struct text;
status query_add_settings(struct store *store, const char *by, struct text *sql, struct error *error);

#define QUERY_CELLS_LIMIT 10000000 /* of an answer */

/* ERROR_ARGUMENT when no run has the setting; option: the option that names it. */
status query_check_key(struct store *store, const char *option, const char *key, struct error *error);

/* Parameters ?1 to ?11 and ?13 of CHOSEN; ?12: with published numbers; ?14: a baseline. */
status query_bind_filter(struct statement *statement, const struct query_filter *filter, struct error *error);

#endif
