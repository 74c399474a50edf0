#include "harness/run/continuation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "harness/run/run_folder.h"

enum { DIGITS = 12 }; /* digits of a digest in messages */

/* The differences of a run's inputs from the current ones. */
struct changes {
    bool elsewhere;                           /* another file or folder, and therefore another run */
    size_t count, unread;                     /* changed inputs; of these, inputs that no stored row depends on */
    const struct input_row *expected, *found; /* the first one that a row depends on, or else the first one */
    bool first_unread;
};

static const struct input_row *find_input(const struct inputs *inputs, const struct input_row *like)
{
    for (size_t i = 0; i < inputs->count; i++)
        if (inputs->rows[i].task == like->task && strcmp(inputs->rows[i].kind, like->kind) == 0)
            return &inputs->rows[i];
    return NULL;
}

static void note_change(struct changes *changes, const struct unfinished_run *run, const struct input_row *expected,
                        const struct input_row *found)
{
    bool unread = strcmp(expected->kind, "train") == 0 && expected->task >= run->first_untrained;
    changes->count++;
    changes->unread += unread;
    if (changes->expected == NULL || (changes->first_unread && !unread)) {
        changes->expected = expected;
        changes->found = found;
        changes->first_unread = unread;
    }
}

static struct changes compare(const struct unfinished_run *past, const struct inputs *inputs)
{
    struct changes changes = {.elsewhere = past->input_count != inputs->count};
    for (size_t i = 0; i < past->input_count; i++) {
        const struct input_row *expected = &past->inputs[i], *found = find_input(inputs, expected);
        if (found == NULL || (strcmp(found->path, expected->path) != 0 && strcmp(found->digest, expected->digest) != 0))
            changes.elsewhere = true;
        else if (strcmp(found->digest, expected->digest) != 0)
            note_change(&changes, past, expected, found);
    }
    return changes;
}

static bool has_resume_file(const struct unfinished_run *past)
{
    char *resume = past->folder != NULL ? run_resume_file(past->folder) : NULL;
    bool there = resume != NULL && file_exists(resume);
    free(resume);
    return there;
}

static status refuse(const struct store *store, const struct unfinished_run *past, const struct changes *changes,
                     const struct run *run, struct error *error)
{
    char *what = inputs_describe(changes->expected, run);
    char more[64] = "";
    if (changes->count - changes->unread > 1)
        snprintf(more, sizeof more, ", and %zu more inputs changed", changes->count - changes->unread - 1);
    bool trained = strcmp(changes->expected->kind, "train") == 0;
    error_set(error, ERROR_FORMAT,
              "%s changed since run %" PRId64 " of %s %s: expected the digest %.*s, found %.*s%s; put the old "
              "contents back to resume the run, or start it again: mtil runs delete %s %" PRId64
              ", or name another database with run.database",
              what != NULL ? what : changes->expected->path, past->run, store_path(store),
              trained ? "trained on them" : "began", DIGITS, changes->expected->digest, DIGITS, changes->found->digest,
              more, store_path(store), past->run);
    free(what);
    return ERROR_FORMAT;
}

static void warn_mended(const struct unfinished_run *past, const struct inputs *inputs, const struct run *run)
{
    for (size_t i = 0; i < past->input_count; i++) {
        const struct input_row *found = find_input(inputs, &past->inputs[i]);
        if (found == NULL || strcmp(found->digest, past->inputs[i].digest) == 0)
            continue;
        char *what = inputs_describe(found, run);
        log_warn(run->model.log,
                 "%s changed since the run stopped; the task had not begun, so the run goes on with the current ones",
                 what != NULL ? what : found->path);
        free(what);
    }
}

static status choose(struct continuation *c, const struct store *store, const struct run *run,
                     const struct inputs *inputs, const struct unfinished_run *past, struct error *error)
{
    struct changes changes = compare(past, inputs);
    if (changes.elsewhere || changes.count == 0)
        return OK;
    bool anew = !past->evaluated || !has_resume_file(past);
    if (!anew && changes.unread < changes.count)
        return refuse(store, past, &changes, run, error);
    c->run = past->run;
    c->claim = anew ? RUN_ANEW : RUN_GOES_ON;
    c->mended = !anew;
    snprintf(c->before, sizeof c->before, "%s", past->suite_hash);
    if (c->mended)
        warn_mended(past, inputs, run);
    return OK;
}

status continuation_choose(struct continuation *c, struct store *store, const struct run *run,
                           const struct inputs *inputs, struct error *error)
{
    struct unfinished_runs found;
    enum run_status past;
    int64_t same;
    *c = (struct continuation){0};
    TRY(store_run_find(store, inputs->hash, (int64_t)run->model.seed, &same, &past, error));
    if (same != 0)
        return OK;
    TRY(store_find_unfinished(store, suite_settings_hash(run->suite), (int64_t)run->model.seed, &found, error));
    status result = OK;
    for (size_t i = 0; result == OK && c->run == 0 && i < found.count; i++)
        result = choose(c, store, run, inputs, &found.runs[i], error);
    unfinished_runs_free(&found);
    return result;
}
