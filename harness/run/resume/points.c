/* The resume points of a run: what is written at each, and going back to the last one. */
#include <inttypes.h>

#include "core/clock.h"
#include "core/scope.h"
#include "harness/run/run.h"
#include "harness/run/session.h"
#include "harness/scenario/data.h"

/* A resume file that could not be written because its folder is gone: says the latter. */
static status explain_write(const struct session *s, status written, struct error *error)
{
    return written == ERROR_IO && session_check_folder(s, error) != OK ? ERROR_IO : written;
}

/* Longer runs go on from it. */
static status save_state(const struct session *s, const struct checkpoint_place *place, struct error *error)
{
    const struct settings *settings = &s->run->model.settings;
    if (settings->checkpoints != CHECKPOINTS_STATES || settings->method->own != NULL || place->task == 0 ||
        place->iteration > 0)
        return OK;
    OWNED char *path = run_state_file(s->folder, place->task - 1);
    return checkpoint_save(s->run, s->selector, path,
                           &(struct checkpoint_place){.task = place->task, .rows = place->rows, .lasts = true}, error);
}

/* The rows first, then the files with their digest. */
static status commit_place(struct session *s, struct checkpoint_place *place, struct error *error)
{
    size_t task = place->task;
    TRY(session_check_folder(s, error));
    TRY(image_watch_check(&s->images, place->iteration > 0 ? task : task - (task > 0), error));
    TRY(store_commit(s->sequence->store, error));
    return store_digest_rows(s->sequence->store, s->recorder.id, (int64_t)task, (int64_t)place->iteration, &place->rows,
                             error);
}

/* The resume file is written while the run goes on: rows without it are computed again. */
status session_save_place(struct session *s, size_t task, size_t iteration, struct error *error)
{
    struct checkpoint_place place = {.task = task, .iteration = iteration};
    double start = clock_seconds();
    TRY(commit_place(s, &place, error));
    status written = save_state(s, &place, error); /* first: behind a resume file nobody would write it */
    NEXT(written, checkpoint_writer_save(&s->writer, s->run, s->selector, s->resume, &place, error));
    TRY(explain_write(s, written, error));
    s->saved = clock_seconds();
    s->took.files += s->saved - start;
    store_begin(s->sequence->store);
    return OK;
}

status session_keep_state(struct session *s, size_t task, struct error *error)
{
    struct checkpoint_place place = {.task = task};
    double start = clock_seconds();
    TRY(commit_place(s, &place, error));
    TRY(explain_write(s, save_state(s, &place, error), error));
    s->took.files += clock_seconds() - start;
    store_begin(s->sequence->store);
    return OK;
}

status session_check_file(struct session *s, struct error *error)
{
    return explain_write(s, checkpoint_writer_check(&s->writer, error), error);
}

/* Whatever the end, a resume file that was begun is complete or has failed. */
status session_finish_files(struct session *s, status result, struct error *error)
{
    double start = clock_seconds();
    bool first = result == OK || result == ERROR_STOPPED; /* the first failure is the one to report */
    status written = checkpoint_writer_finish(&s->writer, first ? error : NULL);
    if (first)
        written = explain_write(s, written, error);
    s->took.files += clock_seconds() - start;
    return first && written != OK ? written : result;
}

/* A resume file has a digest of the rows in the database; an older copy of the database, or another one, has fewer. More
 * rows are fine: what came after the file is computed again. */
static status check_rows(struct session *s, const struct checkpoint_place *place, struct error *error)
{
    int64_t rows;
    TRY(store_digest_rows(s->sequence->store, s->recorder.id, (int64_t)place->task, (int64_t)place->iteration, &rows,
                          error));
    s->stays_stopped = rows != place->rows;
    if (!s->stays_stopped)
        return OK;
    return error_set(
        error, ERROR_FORMAT,
        "%s: the rows of %zu finished tasks and %zu iterations in %s are not those with which it was written: it "
        "belongs to a run in another database, or to a newer copy of this one, or somebody changed the rows; name "
        "that database, or delete the file to start from the beginning",
        s->resume, place->task, place->iteration, store_path(s->sequence->store));
}

/* The resume file first: if it names the current inputs, it is used whatever the database says. */
static status save_changed_inputs(struct session *s, const struct checkpoint_place *place, struct error *error)
{
    TRY(checkpoint_save(s->run, s->selector, s->resume, place, error));
    return record_changed_inputs(&s->recorder, &s->inputs, error);
}

status session_go_back(struct session *s, struct checkpoint_place *place, bool *resumed, struct error *error)
{
    TRY(checkpoint_load(s->run, s->selector, s->resume, place, resumed, error));
    if (*resumed)
        TRY(check_rows(s, place, error));
    if (s->continuation.images_changed)
        TRY(save_changed_inputs(s, place, error));
    TRY(store_run_rewind(s->sequence->store, s->recorder.id, *resumed ? (int64_t)place->task : -1,
                         *resumed ? (int64_t)place->iteration : 0, error));
    if (*resumed)
        log_info(s->run->model.log, "resuming task %zu of %zu after %zu iterations, from %s", place->task + 1,
                 s->run->data.task_count, place->iteration, s->resume);
    else if (s->begun)
        log_warn(s->run->model.log,
                 "run %" PRId64 " of %s was begun before, but there is no %s: it begins anew, without the rows it had",
                 s->recorder.id, store_path(s->sequence->store), s->resume);
    return OK;
}

void session_tidy_finished(struct session *s)
{
    struct error ignored;
    if (session_find_folder(s, &ignored) == OK)
        checkpoint_remove_finished(s->run, s->resume);
}
