#include "harness/run/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"
#include "core/scope.h"
#include "harness/run/layer_choice.h"
#include "harness/run/run.h"
#include "harness/run/workload.h"
#include "harness/scenario/data.h"
#include "harness/selectors/selector.h"
#include "results/store/live.h"

/* A folder that was replaced is no longer locked, and the resume file would get into a foreign folder. */
static status check_folder(const struct session *s, struct error *error)
{
    struct stat own;
    if (fstat(s->folder_lock, &own) == 0 && file_check_same(s->folder, &own, NULL) == OK)
        return OK;
    return error_set(error, ERROR_IO,
                     "%s: was deleted, renamed or replaced while the run used it; restore it and give the same "
                     "command again",
                     s->folder);
}

/* A resume file that could not be written because its folder is gone: says the latter. */
static status explain_write(const struct session *s, status written, struct error *error)
{
    return written == ERROR_IO && check_folder(s, error) != OK ? ERROR_IO : written;
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
    TRY(check_folder(s, error));
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

/* The database prevents a run from being written twice; this lock keeps runs of two databases out of one folder. */
static status lock_folder(struct session *s, struct error *error)
{
    s->folder_lock = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->folder_lock < 0)
        return error_errno(error, errno, "%s: cannot open the run's folder", s->folder);
    if (flock(s->folder_lock, LOCK_EX | LOCK_NB) == 0)
        return OK;
    s->stays_stopped = errno == EWOULDBLOCK;
    if (s->stays_stopped)
        return error_set(
            error, ERROR_BUSY,
            "%s: in use by another run of the same suite and seed; wait for it, stop it, or set run.folder", s->folder);
    log_warn(s->run->model.log,
             "%s: cannot be locked (%s); see that no other database has a run of this suite and seed there", s->folder,
             strerror(errno));
    return OK; /* go on on a file system without locks */
}

/* Below run.folder, where the run began: its name may come from earlier inputs or another name of the suite. */
static status choose_folder(struct session *s, struct error *error)
{
    const char *below = s->run->model.settings.folder;
    SCOPED(run_row_free) struct run_row row = {0};
    TRY(store_read_run(s->sequence->store, s->recorder.id, &row, error));
    const char *place = row.folder != NULL ? run_files_place(row.folder, row.seed) : NULL;
    s->folder = place != NULL ? path_format("%s/%s", below, place) : run_folder(s->run);
    s->resume = run_resume_file(s->folder);
    OWNED char *began = run_resume_file(row.folder != NULL ? row.folder : s->folder);
    bool left = s->stays_stopped = file_exists(began) && !file_exists(s->resume);
    if (left)
        error_set(error, ERROR_ARGUMENT,
                  "run.folder: run %" PRId64 " of %s is to go on in %s, but its resume file is %s; move that there, "
                  "name its folder in run.folder, or delete the file to start from the beginning",
                  s->recorder.id, store_path(s->sequence->store), s->folder, began);
    return left ? ERROR_ARGUMENT : OK;
}

/* Before whatever looks at the adapters. */
static status choose_blocks(struct session *s, struct error *error)
{
    bool made;
    OWNED char *path = run_scores_file(s->folder);
    TRY(layer_choice_make(s->run, path, s->sequence->progress, &made, error));
    if (made)
        TRY(record_file(&s->recorder, -1, "layer_scores", path, error));
    return OK;
}

static status open_session(struct session *s, struct error *error)
{
    const struct settings *settings = &s->run->model.settings;
    TRY(choose_folder(s, error));
    TRY(directory_create(s->folder, error));
    s->run->model.folder = s->folder;
    TRY(lock_folder(s, error));
    TRY(store_run_move(s->sequence->store, s->recorder.id, s->folder, error));
    TRY(choose_blocks(s, error));
    if (settings_select(settings) && settings->selector.kind->route == ROUTE_BY_ERRORS)
        TRY(selector_create(&s->selector, &s->run->model, &s->run->data, error));
    if (settings->method->own != NULL)
        return OK;
    return evaluator_create(&s->evaluator, &s->run->model, &s->run->data, &s->run->method, s->selector, error);
}

static void close_session(struct session *s)
{
    evaluator_destroy(s->evaluator);
    selector_destroy(s->selector);
    if (s->folder_lock >= 0)
        close(s->folder_lock);
    image_watch_close(&s->images);
    inputs_free(&s->inputs);
    free(s->extension.folder);
    free(s->resume);
    free(s->folder);
}

/* Without training, only a label space that grows changes the answers. Of shared classes, the mean is over the tasks so far. */
static status run_tasks(struct session *s, struct checkpoint_place place, struct error *error)
{
    if (s->run->model.settings.method->own != NULL)
        return session_run_own(s, place.task, error);
    bool trains = s->run->model.groups != GROUPS_NONE || s->run->model.settings.method->end_task != NULL;
    if (!trains && !label_space_grows(s->run->model.settings.label_space) && !s->run->data.shared_classes)
        return OK;
    for (size_t task = joint_first(&s->run->data, place.task); task < s->run->data.task_count; task++) {
        s->task = joint_or(&s->run->data, task);
        TRY(trains ? session_train(s, task, task == place.task ? place.iteration : 0, error) : OK);
        TRY(session_train_selector(s, task, error));
        TRY(session_evaluate_and_save(s, task, 0, error));
        TRY(session_save_place(s, task + 1, 0, error));
        if (stop_requested(s->sequence->stop) && task + 1 < s->run->data.task_count)
            return error_set(error, ERROR_STOPPED, "stopped after task %zu of %zu", task + 1, s->run->data.task_count);
    }
    return OK;
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

/* Operations that are not counted (0) have no value. */
static struct value operations_value(double operations)
{
    return operations > 0 ? value_real(operations) : value_null();
}

static status record_operations(struct session *s, struct error *error)
{
    for (size_t k = 0; k < s->run->data.task_count; k++)
        TRY(store_add(s->sequence->store, s->recorder.id, "operations",
                      NAMED({"task", value_integer((int64_t)k)},
                            {"step", operations_value(workload_step(s->run, joint_or(&s->run->data, k)))},
                            {"image", operations_value(workload_image(s->run))}),
                      error));
    return OK;
}

/* Goes back to the resume file's place, or begins with the zero-shot row. */
static status resume(struct session *s, struct checkpoint_place *place, struct error *error)
{
    bool resumed;
    TRY(checkpoint_load(s->run, s->selector, s->resume, place, &resumed, error));
    if (resumed)
        TRY(check_rows(s, place, error));
    if (s->continuation.images_changed)
        TRY(save_changed_inputs(s, place, error));
    TRY(store_run_rewind(s->sequence->store, s->recorder.id, resumed ? (int64_t)place->task : -1,
                         resumed ? (int64_t)place->iteration : 0, error));
    if (resumed)
        log_info(s->run->model.log, "resuming task %zu of %zu after %zu iterations, from %s", place->task + 1,
                 s->run->data.task_count, place->iteration, s->resume);
    else if (s->begun)
        log_warn(s->run->model.log,
                 "run %" PRId64 " of %s was begun before, but there is no %s: it begins anew, without the rows it had",
                 s->recorder.id, store_path(s->sequence->store), s->resume);
    workload_count(s->run, place->task, place->iteration, &s->work);
    TRY(record_tasks(&s->recorder, error));
    bool extends = !resumed && s->extension.run != 0;
    if (extends)
        TRY(store_run_extend(s->sequence->store, s->recorder.id, s->extension.run, error));
    store_begin(s->sequence->store);
    TRY(record_operations(s, error));
    if (s->run->model.settings.method->own != NULL)
        TRY(session_start_own(s, place->task, resumed, error));
    else
        TRY(session_zero_shot_row(s, !resumed, error));
    if (resumed || extends)
        return extends ? session_extend(s, place, error) : OK;
    TRY(record_sketches(&s->recorder, joint_first(&s->run->data, 0), 0, error));
    return session_save_place(s, 0, 0, error);
}

static status finish(struct session *s, struct error *error)
{
    const struct feature_cache *cache = s->evaluator != NULL ? s->evaluator->cache : NULL;
    if (cache != NULL && cache->images_asked > 0)
        log_debug(s->run->model.log,
                  "%zu of %zu predictions after training were computed, the others are those of an earlier test",
                  cache->images_encoded, cache->images_asked);
    return store_commit(s->sequence->store, error);
}

/* Whatever the end, a resume file that was begun is complete or has failed. */
static status end_files(struct session *s, status result, struct error *error)
{
    double start = clock_seconds();
    bool first = result == OK || result == ERROR_STOPPED; /* the first failure is the one to report */
    status written = checkpoint_writer_finish(&s->writer, first ? error : NULL);
    if (first)
        written = explain_write(s, written, error);
    s->took.files += clock_seconds() - start;
    return first && written != OK ? written : result;
}

static status end_run(struct session *s, status result, struct error *error)
{
    struct store *store = s->sequence->store;
    bool stopped = result == ERROR_STOPPED || s->stays_stopped;
    enum run_status end = result == OK ? RUN_FINISHED : stopped ? RUN_STOPPED : RUN_FAILED;
    struct error ending;
    if (result != OK)
        store_rollback(store);
    status recorded = store_run_end(store, s->recorder.id, end, end == RUN_FAILED ? error->message : NULL, &ending);
    if (result != OK)
        return result; /* the first failure is the one to report */
    if (recorded != OK) {
        *error = ending;
        return recorded;
    }
    return unlink(s->resume) == 0 || errno == ENOENT ? OK : error_errno(error, errno, "%s: cannot remove", s->resume);
}

static void tidy_finished(struct session *s)
{
    struct error ignored;
    if (choose_folder(s, &ignored) == OK)
        checkpoint_remove_finished(s->run, s->resume);
}

/* Reports to watchers of the database (results/store/live.h). */
static void report_to_watchers(void *context, const struct progress_news *news)
{
    const struct session *s = context;
    const struct progress_state *state = news->state;
    size_t current = s->task != NULL ? s->task->index + 1 : 0; /* also while images are decoded or encoded for it */
    struct live live = {.task = (int64_t)(state->task > 0 ? state->task : current),
                        .tasks = (int64_t)s->run->data.task_count,
                        .activity = state->activity,
                        .subject = state->subject != NULL ? state->subject : "",
                        .step = (int64_t)state->step,
                        .steps = (int64_t)state->steps,
                        .loss = isfinite(state->loss) ? state->loss : 0,
                        .images_per_second = news->images_per_second,
                        .seconds_left = news->seconds_left,
                        .done = news->done};
    live_write(s->sequence->store, s->recorder.id, &live);
}

/* A run that is finished already needs no shorter one. */
static status find_shorter(struct session *s, struct error *error)
{
    enum run_status past;
    int64_t same;
    if (!s->sequence->extends)
        return OK;
    TRY(store_run_find(s->sequence->store, s->inputs.hash, (int64_t)s->run->model.seed, &same, &past, error));
    return same != 0 && past == RUN_FINISHED
               ? OK
               : extension_find(&s->extension, s->sequence->store, s->run, &s->inputs, error);
}

/* Reads the inputs of the run, which identify it. */
static status identify(struct session *s, struct error *error)
{
    struct sequence *sequence = s->sequence;
    SCOPED(surveyor_close) struct surveyor surveyor = {0};
    double start = clock_seconds();
    TRY(image_watch_open(&s->images, s->run, error));
    TRY(surveyor_open(&surveyor, &s->run->model.settings, s->run->model.log, sequence->progress, sequence->stop,
                      error));
    TRY(surveyor_tasks(s->run, &surveyor, error));
    TRY(image_watch_after_survey(&s->images, error));
    TRY(inputs_read(&s->inputs, &surveyor, s->run->suite, s->run, error));
    memcpy(s->run->identity, s->inputs.hash, sizeof s->run->identity);
    TRY(continuation_choose(&s->continuation, sequence->store, s->run, &s->inputs, error));
    memcpy(s->run->identity_before, s->continuation.before, sizeof s->run->identity_before);
    TRY(find_shorter(s, error));
    s->took.inputs = clock_seconds() - start;
    return OK;
}

/* Finds or creates the run of these inputs; a finished one is left as it is. */
static status claim(struct session *s, struct error *error)
{
    struct run_start start;
    TRY(record_start(&s->recorder, &s->inputs, &s->continuation, &start, error));
    s->sequence->id = start.run;
    s->begun = !start.created;
    s->sequence->finished_before = !start.created && start.past == RUN_FINISHED;
    if (!s->sequence->finished_before)
        return OK;
    tidy_finished(s);
    return store_run_end(s->sequence->store, start.run, RUN_FINISHED, NULL, error);
}

static status begin(struct session *s, struct checkpoint_place *place, struct error *error)
{
    s->run->model.stop = s->sequence->stop;
    progress_listen(s->sequence->progress, report_to_watchers, s);
    cache_progress_begin(s->run->data.cache, &s->decoding);
    TRY(record_session(&s->recorder, error));
    TRY(open_session(s, error));
    return resume(s, place, error);
}

static status end(struct session *s, status result, struct error *error)
{
    NEXT(result, finish(s, error));
    result = end_files(s, result, error);
    cache_progress_end(s->run->data.cache);
    progress_listen(s->sequence->progress, NULL, NULL);
    log_debug(s->run->model.log,
              "opening took %.3f s, inputs %.3f s, rows and files %.3f s, %.3f s of them within training; training "
              "waited %.3f s for images, tests and selectors %.3f s",
              s->sequence->opening_seconds, s->took.inputs, s->took.files, s->took.files_of_training,
              s->took.images_of_training, s->run->model.waited - s->took.images_of_training);
    return end_run(s, result, error);
}

status sequence_run(struct sequence *sequence, struct error *error)
{
    SCOPED(close_session)
    struct session session = {.sequence = sequence,
                              .run = sequence->run,
                              .folder_lock = -1,
                              .saved = clock_seconds(),
                              .decoding = {sequence->progress, sequence->stop},
                              .recorder = {.store = sequence->store, .run = sequence->run}};
    struct checkpoint_place place;
    TRY(identify(&session, error));
    TRY(claim(&session, error));
    if (sequence->finished_before)
        return OK;
    status result = begin(&session, &place, error);
    NEXT(result, run_tasks(&session, place, error));
    return end(&session, result, error);
}
