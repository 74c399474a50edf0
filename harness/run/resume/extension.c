#include "harness/run/resume/extension.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/methods/methods.h"
#include "harness/run/session.h"
#include "harness/run/workload.h"
#include "harness/train/serializer.h"
#include "harness/train/trainer.h"
#include "results/store/database.h"

/* --- Finding the shorter run --- */

static bool averages_over_run(const struct settings *s)
{
    return method_uses(s->method, s->method_options, "merge") && strcmp(s->merge.policy->name, "ewa") == 0 &&
           strcmp(options_text(s->merge.policy_options, "ramp"), "run") == 0;
}

static bool describes_classes(const struct settings *s)
{
    return strcmp(s->method->name, "engine") == 0 && options_text(s->method_options, "descriptions") != NULL;
}

/* Of what a run computes from the number of tasks or from the later ones; what a resume file shows is refused when it is read. */
static const char *dependence(const struct settings *s)
{
    return s->method->own != NULL ? "another program trains it"
           : s->method->joint     ? "its method trains on all tasks at once"
           : s->method->alone     ? "its method trains each task by itself, which a run of that task does, too"
           : s->method->counts_tasks || s->method->two_deltas ? "what its method trains depends on the number of tasks"
           : s->split.cut != CUT_NONE                         ? "data.split_by cuts one dataset into all tasks"
           : s->label_space == LABEL_SPACE_ALL
               ? "with evaluation.label_space: all every test compares with the classes of all tasks"
           : s->adapter.place.blocks.rule == BLOCKS_BY_SCORE ? "its blocks are chosen by scores of all tasks"
           : averages_over_run(s)                            ? "merge.ramp: run rises over the iterations of all tasks"
           : describes_classes(s)                            ? "its descriptions are drawn from pairs of all classes"
                                                             : NULL;
}

/* The suite with the first tasks of data.order alone. */
static status shorten(struct suite **suite, const struct run *run, size_t tasks, struct error *error)
{
    const struct options *data = suite_options(run->suite, "data");
    const char *text = suite_text(run->suite);
    bool shots = options_list_size(data, "task_shots") > 0;
    SCOPED(text_free) struct text order = {0}, numbers = {0};
    for (size_t k = 0; k < tasks; k++)
        text_add(&order, "%s%s", k > 0 ? "," : "data.order=", options_list_item(data, "order", k));
    for (size_t k = 0; shots && k < tasks; k++)
        text_add(&numbers, "%s%s", k > 0 ? "," : "data.task_shots=", options_list_item(data, "task_shots", k));
    return suite_parse(suite, text, strlen(text), suite_name(run->suite), settings_sections,
                       (const char *const[]){order.data, numbers.data}, shots ? 2 : 1, error);
}

struct search {
    struct extension *extension;
    struct store *store;
    const struct inputs *inputs;
    bool differs; /* an input of the run that is looked at */
};

/* Columns: task, kind, digest. */
static status compare_input(void *context, struct statement *row, struct error *error)
{
    struct search *search = context;
    const struct input_row *now = search->inputs->rows, *end = now + search->inputs->count;
    while (now < end && (now->task != statement_integer(row, 0) || strcmp(now->kind, statement_text(row, 1)) != 0))
        now++;
    search->differs = search->differs || now == end || strcmp(now->digest, statement_text(row, 2)) != 0;
    return OK;
}

/* Columns: run, suite_hash, folder. */
static status take_run(void *context, struct statement *row, struct error *error)
{
    struct search *search = context;
    struct extension *e = search->extension;
    search->differs = false;
    TRY(database_each(store_database(search->store), "SELECT task, kind, digest FROM inputs WHERE run = ?1",
                      VALUES(value_integer(statement_integer(row, 0))), compare_input, search, error));
    if (search->differs || e->run != 0)
        return OK;
    e->run = statement_integer(row, 0);
    e->folder = xstrdup(statement_text(row, 2));
    snprintf(e->hash, sizeof e->hash, "%s", statement_text(row, 1));
    return OK;
}

static status look(struct search *search, const struct run *run, size_t tasks, struct error *error)
{
    SCOPED(suite_destroy_at) struct suite *suite = NULL;
    struct settings shorter;
    TRY(shorten(&suite, run, tasks, error));
    TRY(settings_read(&shorter, suite, error));
    TRY(database_each(store_database(search->store),
                      "SELECT run, suite_hash, folder FROM runs WHERE settings_hash = ?1 AND seed = ?2 AND status = "
                      "'finished'",
                      VALUES(value_text(suite_settings_hash(suite)), value_integer((int64_t)run->model.seed)), take_run,
                      search, error));
    bool alike = !(run->model.groups & GROUP_ADAPTERS) || search->extension->run == 0 ||
                 (shorter.adapter.tasks == tasks) == (run->model.settings.adapter.tasks == run->data.task_count);
    if (alike)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "--extend: run %" PRId64 " of one task recorded the choices of its router, which a run with one "
                     "router for all tasks does not; run two tasks first, or leave --extend out",
                     search->extension->run);
}

static bool has_label(const struct archive *archive, const char *key, const char *expected)
{
    const char *found = archive_metadata(archive, key);
    return found != NULL && strcmp(found, expected) == 0;
}

static status check_labels(const struct extension *e, const struct run *run, const char *path, struct error *error)
{
    SCOPED(archive_close_at) struct archive *archive = NULL;
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, run->model.seed);
    TRY(archive_open(&archive, path, error));
    bool same = has_label(archive, "program", "mtil " MTIL_VERSION) && has_label(archive, "suite_hash", e->hash) &&
                has_label(archive, "seed", seed);
    return same ? OK
                : error_set(error, ERROR_FORMAT,
                            "--extend: %s: expected a state of run %" PRId64
                            " by this version of the program, found another one; leave --extend out",
                            path, e->run);
}

static status expect_states(const struct extension *e, struct store *store, const struct run *run, struct error *error)
{
    for (size_t k = 0; k < e->tasks; k++) {
        OWNED char *path = run_state_file(e->folder, k);
        TRY(file_exists(path)
                ? check_labels(e, run, path, error)
                : error_set(error, ERROR_ARGUMENT,
                            "--extend: run %" PRId64
                            " of %s, of the first %zu tasks, left no state after task %zu: there is no "
                            "%s; run them with run.checkpoints=states in another database, or leave --extend out",
                            e->run, store_path(store), e->tasks, k + 1, path));
    }
    return OK;
}

status extension_find(struct extension *e, struct store *store, const struct run *run, const struct inputs *inputs,
                      struct error *error)
{
    const char *reason = dependence(&run->model.settings);
    struct search search = {.extension = e, .store = store, .inputs = inputs};
    *e = (struct extension){.tasks = run->data.task_count};
    if (reason != NULL)
        return error_set(error, ERROR_ARGUMENT, "--extend: a run of fewer tasks cannot go on: %s; leave --extend out",
                         reason);
    while (e->run == 0 && --e->tasks > 0)
        TRY(look(&search, run, e->tasks, error));
    if (e->run == 0)
        return error_set(
            error, ERROR_ARGUMENT,
            "--extend: %s has no finished run of the first tasks of data.order with these settings and images "
            "and seed %" PRIu64 "; run them first, with run.checkpoints=states, or leave --extend out",
            store_path(store), run->model.seed);
    return expect_states(e, store, run, error);
}

/* --- Going on from it --- */

static status load_state(struct session *s, size_t k, struct error *error)
{
    const struct extension *e = &s->extension;
    struct checkpoint_place place;
    int64_t rows;
    OWNED char *path = run_state_file(e->folder, k);
    TRY(checkpoint_load_shorter(s->run, s->selector, path, e->hash, e->tasks, &place, error));
    TRY(store_digest_rows(s->sequence->store, e->run, (int64_t)k + 1, 0, &rows, error));
    if (place.rows != rows || place.task != k + 1 || place.iteration != 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected the state after task %zu of run %" PRId64
                         " with its rows in %s, found another one; leave --extend out",
                         path, k + 1, e->run, store_path(s->sequence->store));
    return OK;
}

status session_extend(struct session *s, struct checkpoint_place *place, struct error *error)
{
    const struct extension *e = &s->extension;
    log_info(s->run->model.log, "goes on after the %zu tasks of run %" PRId64, e->tasks, e->run);
    for (size_t k = 0; k < e->tasks; k++) {
        s->task = &s->run->data.tasks[k];
        TRY(load_state(s, k, error));
        if (s->run->model.groups != GROUPS_NONE)
            TRY(train_begin_task(&s->run->method, s->task, true, error));
        TRY(session_evaluate_and_save(s, k, e->tasks, error));
        TRY(load_state(s, k, error)); /* what a method swaps in after a test is of its own training */
        if (k + 1 < e->tasks)         /* a resume file here would train tasks of the shorter run */
            TRY(session_keep_state(s, k + 1, error));
        else
            TRY(session_save_place(s, k + 1, 0, error));
    }
    workload_count(s->run, e->tasks, 0, &s->work);
    *place = (struct checkpoint_place){.task = e->tasks};
    return OK;
}
