#include "results/store/trials.h"

#include <stdlib.h>

#include "core/array.h"
#include "results/store/store_internal.h"

/* --- What there is to try --- */

static status take_adapters(void *context, struct statement *row, struct error *error)
{
    struct trial_source *source = context;
    (void)error;
    GROW(source->adapters, source->count);
    source->adapters[source->count++] =
        (struct trial_adapters){statement_integer(row, 0), statement_string(row, 1), statement_string(row, 2)};
    return OK;
}

status trial_source_read(struct store *store, int64_t run, struct trial_source *source, struct error *error)
{
    *source = (struct trial_source){0};
    TRY(erase_describe(store, run, &source->run, error));
    TRY(erase_lock(store, run, error));
    return database_each(store->database,
                         "SELECT task, path, coalesce(digest, '') FROM artifacts WHERE run = ?1 AND kind = 'adapters' "
                         "ORDER BY task",
                         VALUES(value_integer(run)), take_adapters, source, error);
}

void trial_source_free(struct trial_source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        free(source->adapters[i].path);
        free(source->adapters[i].digest);
    }
    free(source->adapters);
    run_remains_free(&source->run);
    *source = (struct trial_source){0};
}

/* --- Trials --- */

status trial_find(struct store *store, int64_t run, const struct trial_row *row, int64_t *trial, struct error *error)
{
    return database_ask(store->database, "SELECT trial FROM selector_trials WHERE run = ?1 AND settings = ?2",
                        VALUES(value_integer(run), value_text(row->settings)), trial, error);
}

status trial_open(struct store *store, int64_t run, const struct trial_row *row, int64_t *trial, struct error *error)
{
    TRY(database_run(
        store->database,
        "INSERT INTO selector_trials (run, trial, selector, selection, settings) SELECT ?1, "
        "(SELECT count(*) + 1 FROM selector_trials WHERE run = ?1), ?2, ?3, ?4 "
        "WHERE NOT EXISTS (SELECT 1 FROM selector_trials WHERE run = ?1 AND settings = ?4)",
        VALUES(value_integer(run), value_text(row->selector), value_text(row->selection), value_text(row->settings)),
        error));
    return trial_find(store, run, row, trial, error);
}

status trial_has(struct store *store, int64_t run, int64_t trial, int64_t after_task, bool *has, struct error *error)
{
    int64_t rows;
    TRY(database_ask(store->database,
                     "SELECT count(*) FROM trial_evaluations WHERE run = ?1 AND trial = ?2 AND after_task = ?3",
                     VALUES(value_integer(run), value_integer(trial), value_integer(after_task)), &rows, error));
    *has = rows > 0;
    return OK;
}

static status add_task(struct store *store, int64_t run, int64_t trial, const struct evaluation_row *row,
                       const struct router_choices_row *choices, struct error *error)
{
    const struct named_value of[] = {{"trial", value_integer(trial)},
                                     {"task", value_integer(row->task)},
                                     {"after_task", value_integer(row->after_task)}};
    TRY(store_add(
        store, run, "trial_evaluations",
        NAMED(of[0], of[1], of[2], {"correct", value_integer(row->correct)}, {"images", value_integer(row->images)}),
        error));
    for (size_t i = 0; i <= choices->routers; i++)
        if (choices->counts[i] > 0)
            TRY(store_add(store, run, "trial_choices",
                          NAMED(of[0], of[1], of[2], {"router", value_integer((int64_t)i - 1)},
                                {"count", value_integer((int64_t)choices->counts[i])}),
                          error));
    return OK;
}

status trial_add(struct store *store, int64_t run, int64_t trial, const struct evaluation_row *evaluations,
                 const struct router_choices_row *choices, size_t tasks, struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    status result = OK;
    for (size_t j = 0; result == OK && j < tasks; j++)
        result = add_task(store, run, trial, &evaluations[j], &choices[j], error);
    return database_end(store->database, began, result, error);
}
