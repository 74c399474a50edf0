#include "harness/run/resume/continuation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"

enum { DIGITS = 12 }; /* digits of a digest in messages */

/* An unfinished run of the same settings and seed, and the differences of its inputs from the current ones. */
struct unfinished {
    const struct run *now;
    const struct inputs *inputs;
    int64_t run, first_untrained;   /* the first task without a trace of training */
    const char *folder;             /* "": unknown */
    bool evaluated;                 /* it has accuracies */
    bool elsewhere;                 /* another file or folder, and therefore another run */
    size_t stored, changed, unread; /* inputs, those that changed and, of these, those that no stored row depends on */
    const struct input_row *found;  /* the first one that a row depends on, or else the first one */
    bool found_unread;
    char expected[DIGEST_SIZE]; /* its former digest */
    struct text changes;        /* those that changed, in words */
};

static void note_change(struct unfinished *run, const struct input_row *found, const char *digest)
{
    bool unread = strcmp(found->kind, "train") == 0 && found->task >= run->first_untrained;
    OWNED char *what = inputs_describe(found, run->now);
    text_add(&run->changes, "%s%s", run->changed > 0 ? ", " : "", what != NULL ? what : found->path);
    run->changed++;
    run->unread += unread;
    if (run->found == NULL || (run->found_unread && !unread)) {
        run->found = found;
        run->found_unread = unread;
        snprintf(run->expected, sizeof run->expected, "%s", digest);
    }
}

/* Columns: task, kind, path, digest. */
static status compare_input(void *context, struct statement *row, struct error *error)
{
    struct unfinished *run = context;
    const struct input_row *found = run->inputs->rows, *end = found + run->inputs->count;
    run->stored++;
    while (found < end &&
           (found->task != statement_integer(row, 0) || strcmp(found->kind, statement_text(row, 1)) != 0))
        found++;
    bool same = found < end && strcmp(found->digest, statement_text(row, 3)) == 0;
    if (found == end || (!same && strcmp(found->path, statement_text(row, 2)) != 0))
        run->elsewhere = true;
    else if (!same)
        note_change(run, found, statement_text(row, 3));
    return OK;
}

static bool has_resume_file(const struct unfinished *run)
{
    OWNED char *resume = run_resume_file(run->folder);
    return *run->folder != 0 && file_exists(resume);
}

static status refuse(const struct store *store, const struct unfinished *run, struct error *error)
{
    OWNED char *what = inputs_describe(run->found, run->now);
    char more[64] = "";
    if (run->changed - run->unread > 1)
        snprintf(more, sizeof more, ", and %zu more inputs changed", run->changed - run->unread - 1);
    bool trained = strcmp(run->found->kind, "train") == 0;
    return error_set(error, ERROR_FORMAT,
                     "%s changed since run %" PRId64 " of %s %s: expected the digest %.*s, found %.*s%s; put the old "
                     "contents back to resume the run, or start it again: mtil runs delete %s %" PRId64
                     ", or name another database with run.database",
                     what != NULL ? what : run->found->path, run->run, store_path(store),
                     trained ? "trained on them" : "began", DIGITS, run->expected, DIGITS, run->found->digest, more,
                     store_path(store), run->run);
}

struct choice {
    struct continuation *continuation;
    struct store *store;
    const struct run *now;
    const struct inputs *inputs;
};

/* Columns: run, suite_hash, folder, whether it has accuracies, the first task without a trace of training. */
static status consider_run(void *context, struct statement *row, struct error *error)
{
    const struct choice *choice = context;
    struct continuation *c = choice->continuation;
    if (c->run != 0)
        return OK;
    struct unfinished run = {.now = choice->now,
                             .inputs = choice->inputs,
                             .run = statement_integer(row, 0),
                             .folder = statement_text(row, 2),
                             .evaluated = statement_integer(row, 3) != 0,
                             .first_untrained = statement_integer(row, 4)};
    status result =
        database_each(store_database(choice->store), "SELECT task, kind, path, digest FROM inputs WHERE run = ?1",
                      VALUES(value_integer(run.run)), compare_input, &run, error);
    bool another = run.elsewhere || run.stored != choice->inputs->count || run.changed == 0;
    bool anew = !run.evaluated || !has_resume_file(&run);
    if (result == OK && !another && !anew && run.unread < run.changed)
        result = refuse(choice->store, &run, error);
    if (result == OK && !another) {
        *c = (struct continuation){.run = run.run, .claim = anew ? RUN_ANEW : RUN_GOES_ON, .images_changed = !anew};
        snprintf(c->before, sizeof c->before, "%s", statement_text(row, 1));
    }
    if (c->images_changed)
        log_warn(choice->now->model.log,
                 "%s changed since the run stopped; the task had not begun, so the run goes on with the current ones",
                 run.changes.data);
    text_free(&run.changes);
    return result;
}

status continuation_choose(struct continuation *c, struct store *store, const struct run *run,
                           const struct inputs *inputs, struct error *error)
{
    static const char unfinished_sql[] =
        "SELECT run, suite_hash, folder, EXISTS (SELECT 1 FROM evaluations WHERE evaluations.run = runs.run), "
        "max(coalesce((SELECT max(after_task) + 1 FROM evaluations WHERE evaluations.run = runs.run), 0), "
        "coalesce((SELECT max(task) + 1 FROM steps WHERE steps.run = runs.run), 0)) "
        "FROM runs WHERE settings_hash = ?1 AND seed = ?2 AND status <> 'finished' ORDER BY run DESC";
    enum run_status past;
    int64_t same;
    *c = (struct continuation){0};
    TRY(store_run_find(store, inputs->hash, (int64_t)run->model.seed, &same, &past, error));
    if (same != 0)
        return OK;
    return database_each(store_database(store), unfinished_sql,
                         VALUES(value_text(suite_settings_hash(run->suite)), value_integer((int64_t)run->model.seed)),
                         consider_run, &(struct choice){c, store, run, inputs}, error);
}
