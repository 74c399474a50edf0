/* The list of runs and their status. */
#include <stdlib.h>
#include <string.h>

#include "results/query/internal.h"
#include "results/store/running.h"

enum { RUN = 0, HOST = 15, STATUS = 10 };

/* Marks runs whose process is gone, because a killed run cannot record that itself. */
static void say_gone(struct store *store, struct table *table)
{
    for (size_t row = 0; row < table_rows(table); row++) {
        struct table_cell *cell = &table->cell[row * table->columns];
        if (strcmp(cell[STATUS].text, "running") != 0 || !running_is_gone(store, cell[RUN].integer, cell[HOST].text))
            continue;
        char *gone = strdup(RUNNING_GONE);
        table->failed |= gone == NULL;
        if (gone == NULL)
            return;
        free(cell[STATUS].text);
        cell[STATUS].text = gone;
    }
}

status query_runs(struct store *store, const struct query_filter *filter, struct table *table, struct error *error)
{
    TRY(query_answer_sql(store,
                         CHOSEN "SELECT run, suite, setting, method, policy, selector, selection, task_order AS "
                                "\"order\", model, seed, status, started, finished, message, folder, host FROM chosen "
                                "ORDER BY run",
                         filter, table, error));
    say_gone(store, table);
    return OK;
}
