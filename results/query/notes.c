/* Notes on what an answer leaves out and what to ask instead, as SQL with one text, or none. */
#include <string.h>

#include "results/query/internal.h"

/* Finished runs that are not in the view metrics. */
#define NOT_WHOLE                                                                                                      \
    CHOSEN "SELECT count(*) || ' finished run' || iif(count(*) = 1, ' (', 's (') || group_concat(DISTINCT method) || " \
           "iif(count(*) = 1, ') is', ') are') || ' not shown: the accuracy matrix has no row after each task. "       \
           "mtil query matrix shows what there is' FROM chosen WHERE status = 'finished' AND (SELECT count(*) FROM "   \
           "evaluations WHERE evaluations.run = chosen.run AND after_task BETWEEN 0 AND tasks - 1) < "                 \
           "iif(setting = 'class_incremental', tasks * (tasks + 1) / 2, tasks * tasks) HAVING count(*) > 0"

static const struct {
    const char *query, *sql;
} notes[] = {
    {"metrics", NOT_WHOLE},
    {"tasks", NOT_WHOLE},
    {"leaderboard", NOT_WHOLE},
    {"confusion", CHOSEN
     "SELECT 'images of these runs are compared with the classes of their own task alone, so none is taken for another "
     "task''s: mtil query routers shows which router they were sent to, confusion --dataset TASK the classes' WHERE "
     "?11 IS NULL AND EXISTS (SELECT 1 FROM chosen) AND NOT EXISTS (SELECT 1 FROM chosen WHERE setting IN ('x_tail', "
     "'class_incremental'))"},
    {"routers", CHOSEN
     "SELECT 'no selector chose routers in these runs: the router is given with selector oracle, and all tasks share "
     "one with none' WHERE EXISTS (SELECT 1 FROM chosen) AND NOT EXISTS (SELECT 1 FROM chosen WHERE selection NOT IN "
     "('oracle', 'none'))"},
};

status query_note(struct store *store, const char *name, const struct query_filter *filter, struct text *note,
                  struct error *error)
{
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        struct table table = {0};
        if (strcmp(notes[i].query, name) != 0)
            continue;
        status result = query_answer_sql(store, notes[i].sql, filter, &table, error);
        if (result == OK && table_rows(&table) > 0)
            text_add(note, "%s", table_cell_at(&table, 0, 0)->text);
        table_free(&table);
        return result;
    }
    return OK;
}
