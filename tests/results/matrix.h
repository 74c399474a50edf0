/* The accuracy matrix of a run as reference.h takes it: in percent, NAN where there is no evaluation. */
#pragma once

#include <math.h>

#include "core/alloc.h"
#include "results/store.h"
#include "tests/results/reference.h"

struct run_matrix {
    struct accuracy_matrix matrix;
    double *cells; /* [tasks + 1, tasks], the zero-shot row last */
};

static inline status run_matrix_take(void *context, struct statement *row, struct error *failure)
{
    struct run_matrix *read = context;
    int64_t tasks = (int64_t)read->matrix.tasks, after = statement_integer(row, 0);
    read->cells[(after < 0 ? tasks : after) * tasks + statement_integer(row, 1)] =
        100.0 * (double)statement_integer(row, 2) / (double)statement_integer(row, 3);
    return OK;
}

static inline status run_matrix_read(struct store *store, int64_t run, struct run_matrix *read, struct error *failure)
{
    int64_t tasks;
    TRY(database_ask(store_database(store), "SELECT tasks FROM runs WHERE run = ?1", VALUES(value_integer(run)), &tasks,
                     failure));
    size_t cells = (size_t)(tasks * (tasks + 1));
    read->cells = xmalloc(cells * sizeof *read->cells);
    for (size_t i = 0; i < cells; i++)
        read->cells[i] = NAN;
    read->matrix = (struct accuracy_matrix){
        .tasks = (size_t)tasks, .accuracy = read->cells, .zero_shot = read->cells + tasks * tasks};
    return database_each(store_database(store),
                         "SELECT after_task, task, correct, images FROM evaluations WHERE run = ?1",
                         VALUES(value_integer(run)), run_matrix_take, read, failure);
}

static inline void run_matrix_free(struct run_matrix *read)
{
    free(read->cells);
    *read = (struct run_matrix){0};
}
