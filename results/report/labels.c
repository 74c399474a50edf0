/* Labels and colours of configurations. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "results/report/data.h"
#include "results/store/store_internal.h"

struct drawn {
    const char *hash, *name, *legend;
    size_t colour;
};

/* --- Colours --- */

/* Each has a colour of its own; the colours of other names are shared. */
static const char *const OWNERS[REPORT_BEST] = {"moe_adapters", "most_used",   "random",
                                                "similar",      "coactivated", "downstream"};

static size_t owned_colour(const char *name) /* REPORT_BEST: none */
{
    size_t colour = 0;
    while (colour < REPORT_BEST && strcmp(OWNERS[colour], name) != 0)
        colour++;
    return colour;
}

static size_t usual_colour(const char *name)
{
    uint32_t hash = 0;
    size_t owned = owned_colour(name);
    for (; *name != 0; name++)
        hash = 31 * hash + (unsigned char)*name;
    return owned < REPORT_BEST ? owned : hash % REPORT_BEST;
}

static int compare_colours(const void *a, const void *b)
{
    const struct drawn *x = a, *y = b;
    const char *own = x->name, *other = y->name;
    int shared = (owned_colour(own) == REPORT_BEST) - (owned_colour(other) == REPORT_BEST);
    if (shared != 0)
        return shared;
    return strcmp(own, other) != 0 ? strcmp(own, other) : strcmp(x->legend, y->legend);
}

/* A merge policy of OWNERS has the same colour on every page, whatever its rank. A further configuration of that policy, and another
 * name whose usual colour is taken, gets one that is left. */
static void choose_colours(struct drawn *drawn, size_t count)
{
    bool taken[REPORT_BEST] = {false}, settled[REPORT_BEST] = {false};
    qsort(drawn, count, sizeof *drawn, compare_colours);
    for (size_t i = 0; i < count; i++) {
        drawn[i].colour = usual_colour(drawn[i].name);
        settled[i] = !taken[drawn[i].colour];
        taken[drawn[i].colour] = true;
    }
    for (size_t i = 0; i < count; i++) {
        while (!settled[i] && taken[drawn[i].colour])
            drawn[i].colour = (drawn[i].colour + 1) % REPORT_BEST;
        taken[drawn[i].colour] = true;
    }
}

/* Drawn are the best configurations with a finished run, or the best of all where none has one. The policy has a colour, or
 * the method of runs without one. */
static const char drawn_sql[] =
    "SELECT hash, iif(policy = 'none', method, policy), legend FROM temp.page_configurations AS one WHERE board = ?1 "
    "AND "
    "(finished > 0 OR NOT EXISTS (SELECT 1 FROM temp.page_configurations WHERE board = ?1 AND finished > 0)) "
    "ORDER BY number LIMIT ?2";

static status colour_board(struct report *report, int64_t board, struct error *error)
{
    struct drawn drawn[REPORT_BEST];
    struct statement *read;
    size_t count = 0;
    TRY(statement_open(&read, report->store->database, drawn_sql, error));
    status result =
        statement_bind(read, VALUES(value_integer(board), value_integer((int64_t)report->request->best)), error);
    for (bool row; result == OK && (result = statement_step(read, &row, error)) == OK && row;)
        drawn[count++] = (struct drawn){.hash = report_copy(report, statement_text(read, 0)),
                                        .name = report_copy(report, statement_text(read, 1)),
                                        .legend = report_copy(report, statement_text(read, 2))};
    statement_close(read);
    choose_colours(drawn, count);
    for (size_t i = 0; result == OK && i < count; i++)
        result =
            database_run(report->store->database, "UPDATE temp.page_configurations SET colour = ?1 WHERE hash = ?2",
                         VALUES(value_integer((int64_t)drawn[i].colour), value_text(drawn[i].hash)), error);
    return result;
}

/* --- Labels --- */

/* Where each configuration is another row of a suite, its name is all there is to say. */
static const char rows_sql[] =
    "UPDATE temp.page_configurations SET named = 1, label = (SELECT value FROM temp.page_settings AS own WHERE "
    "own.hash = "
    "page_configurations.hash AND key = 'run.row') WHERE board IN (SELECT board FROM temp.page_configurations LEFT "
    "JOIN "
    "temp.page_settings AS own ON own.hash = page_configurations.hash AND own.key = 'run.row' GROUP BY board HAVING "
    "count(DISTINCT nullif(value, '')) = count(*))";

/* A column of runs that tells configurations apart which are called the same so far. One alone is called by its method and
 * policy. */
static status label_by(struct report *report, const char *column, bool alone, struct error *error)
{
    const char *sql = report_format(report,
                                    "UPDATE temp.page_configurations SET label = label || iif(label = '', '', ' · ') "
                                    "|| %s WHERE NOT named AND board IN "
                                    "(SELECT board FROM temp.page_configurations GROUP BY board, label HAVING min(%s) "
                                    "<> max(%s) UNION SELECT board FROM "
                                    "temp.page_configurations GROUP BY board HAVING count(*) = 1 AND %d)",
                                    column, column, column, alone);
    TRY(report_check(report, error));
    return database_execute(report->store->database, sql, error);
}

status label_configurations(struct report *report, struct error *error)
{
    static const char *const columns[] = {"suite",     "setting",    "method", "policy",       "selector",
                                          "selection", "task_order", "model",  "\"precision\""};
    TRY(database_execute(report->store->database, rows_sql, error));
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        TRY(label_by(report, columns[i], strcmp(columns[i], "method") == 0 || strcmp(columns[i], "policy") == 0,
                     error));
    TRY(report_script(report, "labels.sql", error));
    for (int64_t board = 1; board <= report->boards; board++)
        TRY(colour_board(report, board, error));
    return report_check(report, error);
}
