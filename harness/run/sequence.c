#include "harness/run/sequence.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"
#include "harness/run/checkpoint_writer.h"
#include "harness/run/image_watch.h"
#include "harness/run/layer_choice.h"
#include "harness/run/run_folder.h"
#include "harness/run/saved_adapters.h"
#include "harness/run/tasks_survey.h"
#include "harness/run/workload.h"
#include "harness/scenario/joint.h"
#include "harness/selectors/selectors.h"
#include "harness/terminal/cache_progress.h"
#include "harness/train/guard.h"
#include "harness/train/trainer.h"
#include "results/store/live.h"

enum { WORTH_KEEPING_SECONDS = 30 };

/* State of a run besides the experiment. */
struct run {
    struct sequence *sequence;
    struct experiment *e;
    struct recorder recorder;
    struct selector *selector; /* NULL: not needed */
    struct evaluator *evaluator;
    struct inputs inputs;
    struct continuation continuation;
    struct image_watch images;
    struct checkpoint_writer writer; /* of the resume file */
    char *folder, *resume;
    int folder_lock;         /* descriptor of the folder; −1: not held */
    double saved;            /* when the last resume point was written */
    const struct task *task; /* being trained */
    struct progress_work work;
    double before, iteration; /* work of training: before this task, and of one of its iterations */
    double last_loss;
    struct {
        double inputs, files, files_of_training, images_of_training;
    } took; /* seconds: to read the inputs; to commit rows and write files; waiting for images */
};

static int64_t peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

static status record_time(struct run *r, int64_t task, int64_t iteration, const char *phase, double since,
                          int64_t iterations, int64_t images, struct error *error)
{
    return store_add(r->sequence->store, r->recorder.run, "timings",
                     NAMED({"task", value_integer(task)}, {"iteration", value_integer(iteration)},
                           {"phase", value_text(phase)}, {"seconds", value_real(clock_seconds() - since)},
                           {"iterations", value_count(iterations)}, {"images", value_count(images)},
                           {"peak_bytes", value_count(peak_bytes())}),
                     error);
}

/* A folder that was replaced is no longer locked, and the resume file would get into a foreign folder. */
static status check_folder(const struct run *r, struct error *error)
{
    struct stat own;
    if (fstat(r->folder_lock, &own) == 0 && file_check_same(r->folder, &own, NULL) == OK)
        return OK;
    return error_set(error, ERROR_IO,
                     "%s: was deleted, renamed or replaced while the run used it; restore it and give the same "
                     "command again",
                     r->folder);
}

/* A resume file that could not be written because its folder is gone: says the latter. */
static status explain_write(const struct run *r, status written, struct error *error)
{
    return written == ERROR_IO && check_folder(r, error) != OK ? ERROR_IO : written;
}

/* The rows first, then the file with their digest, written while the run goes on: rows without the file are computed
 * again. */
static status save_place(struct run *r, size_t task, size_t iteration, struct error *error)
{
    struct checkpoint_place place = {.task = task, .iteration = iteration};
    double start = clock_seconds();
    TRY(check_folder(r, error));
    TRY(image_watch_check(&r->images, iteration > 0 ? task : task - (task > 0), error));
    TRY(store_commit(r->sequence->store, error));
    TRY(store_digest_rows(r->sequence->store, r->recorder.run, (int64_t)task, (int64_t)iteration, &place.rows, error));
    status written = checkpoint_writer_save(&r->writer, r->e, r->selector, r->resume, &place, error);
    TRY(explain_write(r, written, error));
    r->saved = clock_seconds();
    r->took.files += r->saved - start;
    store_begin(r->sequence->store);
    return OK;
}

/* --- Training --- */

static bool wants_loss(void *context, size_t iteration, size_t iterations)
{
    const struct run *r = context;
    return iteration == 1 || iteration == iterations || iteration % r->e->settings.log_every == 0;
}

static status after_iteration(void *context, const struct step_report *report, struct error *error)
{
    struct run *r = context;
    size_t task = r->task->index, every = r->e->settings.checkpoint_every;
    TRY(explain_write(r, checkpoint_writer_check(&r->writer, error), error));
    TRY(record_changes(&r->recorder, task, report->iteration, error));
    if (report->looked) {
        r->last_loss = isfinite(report->loss) ? report->loss : r->last_loss;
        TRY(store_add(r->sequence->store, r->recorder.run, "steps",
                      NAMED({"task", value_integer((int64_t)task)},
                            {"iteration", value_integer((int64_t)report->iteration)},
                            {"loss", value_real(report->loss)}, {"learning_rate", value_real(report->rate)},
                            {"balance_loss", value_real(report->balance)}),
                      error));
    }
    r->work.done[WORK_TRAINING] = r->before + (double)report->iteration * r->iteration;
    progress_report(r->sequence->progress, &(struct progress_state){.activity = "train",
                                                                    .subject = r->task->settings.name,
                                                                    .task = task + 1,
                                                                    .tasks = r->e->data.task_count,
                                                                    .step = report->iteration,
                                                                    .steps = report->iterations,
                                                                    .loss = r->last_loss,
                                                                    .images = report->images,
                                                                    .work = &r->work});
    /* A long training is saved before selector and evaluation, which follow the last iteration. */
    bool last = report->iteration == report->iterations,
         worth_keeping = last && clock_seconds() - r->saved > WORTH_KEEPING_SECONDS;
    bool due = !last && every > 0 && report->iteration % every == 0;
    if (!due && !worth_keeping && !stop_requested(r->sequence->stop))
        return OK;
    TRY(guard_check(r->e, r->task, report->iteration, error));
    return save_place(r, task, report->iteration, error);
}

static status record_skipped_steps(struct run *r, size_t task, struct error *error)
{
    size_t steps, first;
    TRY(guard_skipped(r->e, &steps, &first, error));
    if (steps == 0)
        return OK;
    log_warn(
        r->e->log,
        "%s: %zu of %zu iterations were left out, the first of them iteration %zu: their loss or gradients were not "
        "finite (training.on_nan=skip)",
        r->task->settings.name, steps, r->task->settings.iterations, first);
    return store_add(r->sequence->store, r->recorder.run, "skipped_steps",
                     NAMED({"task", value_integer((int64_t)task)}, {"steps", value_integer((int64_t)steps)}), error);
}

static status train(struct run *r, size_t task, size_t first, struct error *error)
{
    double start = clock_seconds(), waited = r->e->waited, files = r->took.files;
    r->iteration = workload_iteration(r->e, r->task);
    r->before = r->work.done[WORK_TRAINING] - (double)first * r->iteration;
    struct training training = {.experiment = r->e,
                                .task = r->task,
                                .first = first,
                                .stop = r->sequence->stop,
                                .wants_loss = wants_loss,
                                .after = after_iteration,
                                .context = r};
    TRY(train_task(&training, error));
    r->took.images_of_training += r->e->waited - waited;
    r->took.files_of_training += r->took.files - files;
    r->work.done[WORK_TRAINING] = r->before + workload_training(r->e, r->task);
    size_t iterations = r->task->settings.iterations;
    r->sequence->training_seconds += clock_seconds() - start;
    r->sequence->iterations += iterations - first;
    TRY(record_changes(&r->recorder, task, iterations, error));
    TRY(record_counts(&r->recorder, task, error));
    TRY(record_skipped_steps(r, task, error));
    return record_time(r, (int64_t)task, (int64_t)iterations, "train", start, (int64_t)(iterations - first), 0, error);
}

/* --- Evaluation --- */

static void report_evaluation(struct run *r, const char *activity, size_t j)
{
    progress_report(r->sequence->progress,
                    &(struct progress_state){.activity = activity,
                                             .task = r->task != NULL ? r->task->index + 1 : 0,
                                             .tasks = r->task != NULL ? r->e->data.task_count : 0,
                                             .step = j + 1,
                                             .steps = r->e->data.task_count,
                                             .work = &r->work});
}

static status zero_shot_row(struct run *r, bool record, struct error *error)
{
    double start = clock_seconds();
    int64_t images = 0;
    if (!r->e->model.head->of_texts)
        return OK;
    for (size_t j = 0; j < r->e->data.task_count; j++) {
        if (!record &&
            r->e->model.groups & GROUPS_TOWERS) /* the weights have been trained, and the result is not needed */
            continue;
        report_evaluation(r, "zero-shot", j);
        TRY(evaluator_zero_shot(r->evaluator, j, r->sequence->stop, error));
        if (record)
            TRY(record_evaluation(&r->recorder, -1, &r->evaluator->sets[j], false, error));
        images += (int64_t)r->evaluator->sets[j].n;
        r->work.done[WORK_ZERO_SHOT] += workload_zero_shot(r->e, j);
    }
    r->work.done[WORK_ZERO_SHOT] = r->work.total[WORK_ZERO_SHOT];
    return record ? record_time(r, -1, 0, "evaluate", start, 0, images, error) : OK;
}

/* Not together with the weights that they stand in, which they are evaluated and saved with. */
static bool trains_adapters_alone(const struct run *r)
{
    return r->e->model.groups & GROUP_ADAPTERS && !(r->e->model.groups & GROUPS_TOWERS);
}

static status evaluate_task(struct run *r, size_t checkpoint, size_t j, struct error *error)
{
    const struct settings *s = &r->e->settings;
    bool adapters = trains_adapters_alone(r), own_routers = s->adapter.tasks == s->task_count;
    report_evaluation(r, "evaluate", j);
    if (adapters && s->method->alone)
        TRY(evaluator_with_router(r->evaluator, j, adapters_router(&s->adapter, checkpoint), r->sequence->stop, error));
    else
        TRY(evaluator_task(r->evaluator, checkpoint, j, r->sequence->stop, error));
    return record_evaluation(&r->recorder, (int64_t)checkpoint, &r->evaluator->sets[j], adapters && own_routers, error);
}

/* Whether tasks that are tested now are tested for the last time, in a run that keeps something of each image. */
static bool is_last_test(const struct run *r, size_t checkpoint)
{
    return r->e->settings.per_image != PER_IMAGE_NONE &&
           (r->e->settings.method->alone || checkpoint + 1 == r->e->data.task_count);
}

static status matrix_row(struct run *r, size_t checkpoint, struct error *error)
{
    double start = clock_seconds();
    int64_t images = 0;
    size_t first, end;
    workload_tested(r->e, checkpoint, &first, &end);
    TRY(evaluator_refresh(r->evaluator, error));
    evaluator_see(r->evaluator, checkpoint + 1);
    evaluator_count_experts(r->evaluator, is_last_test(r, checkpoint));
    for (size_t j = first; j < end; j++) {
        TRY(evaluate_task(r, checkpoint, j, error));
        r->work.done[WORK_EVALUATION] += workload_evaluation(r->e, checkpoint, j);
        images += (int64_t)r->evaluator->sets[j].n;
    }
    return record_time(r, (int64_t)checkpoint, (int64_t)r->task->settings.iterations, "evaluate", start, 0, images,
                       error);
}

static status train_selector(struct run *r, size_t task, struct error *error)
{
    if (r->selector == NULL)
        return OK;
    double start = clock_seconds();
    TRY(selector_train(r->selector, &r->e->data.tasks[task], r->sequence->stop, error));
    TRY(record_threshold(&r->recorder, r->selector, task, error));
    r->work.done[WORK_SELECTOR] += workload_selector(r->e, &r->e->data.tasks[task]);
    return record_time(r, (int64_t)task, (int64_t)r->e->data.tasks[task].settings.iterations, "selector", start,
                       (int64_t)r->e->settings.selector.iterations, 0, error);
}

static status save_weights(struct run *r, size_t task, struct error *error)
{
    enum checkpoints keep = r->e->settings.checkpoints;
    if (keep == CHECKPOINTS_NONE || r->e->model.groups == GROUPS_NONE)
        return OK;
    bool adapters = trains_adapters_alone(r);
    double start = clock_seconds();
    const char *kind = adapters ? "adapters" : "weights";
    char *path = keep == CHECKPOINTS_ALL ? path_format("%s/task%02zu.%s.safetensors", r->folder, task, kind)
                                         : path_format("%s/%s.safetensors", r->folder, kind);
    status result = adapters ? saved_adapters_write(r->e, r->selector, task, path, error)
                             : r->e->model.head->save(r->e, path, error);
    if (result == OK)
        result = record_file(&r->recorder, keep == CHECKPOINTS_ALL ? (int64_t)task : -1, kind, path, error);
    free(path);
    r->took.files += clock_seconds() - start;
    return result;
}

static status evaluate_and_save(struct run *r, size_t task, struct error *error)
{
    const struct method *method = r->e->settings.method;
    if (method->evaluation_begin != NULL)
        TRY(method->evaluation_begin(&r->e->method, error));
    TRY(matrix_row(r, task, error));
    TRY(save_weights(r, task, error));
    return method->evaluation_end != NULL ? method->evaluation_end(&r->e->method, error) : OK;
}

/* --- The sequence --- */

/* The database prevents a run from being written twice; this lock keeps runs of two databases out of one folder. */
static status lock_folder(struct run *r, struct error *error)
{
    r->folder_lock = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->folder_lock < 0)
        return error_errno(error, errno, "%s: cannot open the run's folder", r->folder);
    if (flock(r->folder_lock, LOCK_EX | LOCK_NB) == 0)
        return OK;
    if (errno == EWOULDBLOCK)
        return error_set(
            error, ERROR_BUSY,
            "%s: in use by another run of the same suite and seed; wait for it, stop it, or set run.folder", r->folder);
    log_warn(r->e->log, "%s: cannot be locked (%s); see that no other database has a run of this suite and seed there",
             r->folder, strerror(errno));
    return OK; /* go on on a file system without locks */
}

/* The folder in which the run began, if run.folder is unchanged; its name may come from earlier inputs. */
static status choose_folder(struct run *r, struct error *error)
{
    size_t below = strlen(r->e->settings.folder);
    struct run_row row;
    TRY(store_read_run(r->sequence->store, r->recorder.run, &row, error));
    r->folder = row.folder;
    row.folder = NULL;
    run_row_free(&row);
    if (r->folder == NULL || strncmp(r->folder, r->e->settings.folder, below) != 0 || r->folder[below] != '/') {
        free(r->folder);
        r->folder = run_folder(r->e);
    }
    r->resume = run_resume_file(r->folder);
    return OK;
}

/* Before whatever looks at the adapters. */
static status choose_blocks(struct run *r, struct error *error)
{
    bool settled;
    char *path = run_scores_file(r->folder);
    status result = layer_choice_settle(r->e, path, r->sequence->progress, &settled, error);
    if (result == OK && settled)
        result = record_file(&r->recorder, -1, "layer_scores", path, error);
    free(path);
    return result;
}

static status open_run(struct run *r, struct error *error)
{
    const struct settings *s = &r->e->settings;
    TRY(choose_folder(r, error));
    TRY(directory_create(r->folder, error));
    TRY(lock_folder(r, error));
    TRY(choose_blocks(r, error));
    if (settings_select(s) && s->selector.kind->route == ROUTE_BY_ERRORS)
        TRY(selector_create(&r->selector, r->e, error));
    return evaluator_create(&r->evaluator, r->e, r->selector, error);
}

static void close_run(struct run *r)
{
    evaluator_destroy(r->evaluator);
    selector_destroy(r->selector);
    if (r->folder_lock >= 0)
        close(r->folder_lock);
    image_watch_close(&r->images);
    inputs_free(&r->inputs);
    free(r->resume);
    free(r->folder);
}

/* Without training, only a label space that grows changes the answers. */
static status run_tasks(struct run *r, struct checkpoint_place place, struct error *error)
{
    bool trains = r->e->model.groups != GROUPS_NONE || r->e->settings.method->end_task != NULL;
    if (!trains && r->e->settings.label_space != LABEL_SPACE_SEEN)
        return OK;
    for (size_t task = joint_first(&r->e->data, place.task); task < r->e->data.task_count; task++) {
        r->task = joint_or(&r->e->data, task);
        TRY(trains ? train(r, task, task == place.task ? place.iteration : 0, error) : OK);
        TRY(train_selector(r, task, error));
        TRY(evaluate_and_save(r, task, error));
        TRY(save_place(r, task + 1, 0, error));
        if (stop_requested(r->sequence->stop) && task + 1 < r->e->data.task_count)
            return error_set(error, ERROR_STOPPED, "stopped after task %zu of %zu", task + 1, r->e->data.task_count);
    }
    return OK;
}

/* A resume file has a digest of the rows in the database; an older copy of the database, or another one, has fewer. More
 * rows are fine: what came after the file is computed again. */
static status check_rows(struct run *r, const struct checkpoint_place *place, struct error *error)
{
    int64_t rows;
    TRY(store_digest_rows(r->sequence->store, r->recorder.run, (int64_t)place->task, (int64_t)place->iteration, &rows,
                          error));
    if (rows == place->rows)
        return OK;
    return error_set(
        error, ERROR_FORMAT,
        "%s: the rows of %zu finished tasks and %zu iterations in %s are not those with which it was written: it "
        "belongs "
        "to a run in another database, or to a newer copy of this one, or somebody changed the rows; name that "
        "database, or delete the file to start from the beginning",
        r->resume, place->task, place->iteration, store_path(r->sequence->store));
}

/* The resume file first: if it names the current inputs, it is used whatever the database says. */
static status take_mended(struct run *r, const struct checkpoint_place *place, struct error *error)
{
    TRY(checkpoint_save(r->e, r->selector, r->resume, place, error));
    return record_mended(&r->recorder, &r->inputs, error);
}

static status run_from_place(struct run *r, struct error *error)
{
    struct checkpoint_place place;
    bool resumed;
    TRY(checkpoint_load(r->e, r->selector, r->resume, &place, &resumed, error));
    if (resumed)
        TRY(check_rows(r, &place, error));
    if (r->continuation.mended)
        TRY(take_mended(r, &place, error));
    TRY(store_run_rewind(r->sequence->store, r->recorder.run, resumed ? (int64_t)place.task : -1,
                         resumed ? (int64_t)place.iteration : 0, error));
    if (resumed)
        log_info(r->e->log, "resuming task %zu of %zu after %zu iterations, from %s", place.task + 1,
                 r->e->data.task_count, place.iteration, r->resume);
    workload_count(r->e, place.task, place.iteration, &r->work);
    TRY(record_tasks(&r->recorder, error));
    store_begin(r->sequence->store);
    TRY(zero_shot_row(r, !resumed, error));
    if (!resumed)
        TRY(save_place(r, 0, 0, error));
    TRY(run_tasks(r, place, error));
    const struct feature_cache *cache = r->evaluator->cache;
    if (cache->images_asked > 0)
        log_debug(r->e->log,
                  "%zu of %zu predictions after training were computed, the others are those of an earlier test",
                  cache->images_encoded, cache->images_asked);
    return store_commit(r->sequence->store, error);
}

/* Whatever the end, a resume file that was begun is complete or has failed. */
static status end_files(struct run *r, status result, struct error *error)
{
    double start = clock_seconds();
    bool first = result == OK || result == ERROR_STOPPED; /* the first failure is the one to report */
    status written = checkpoint_writer_finish(&r->writer, first ? error : NULL);
    if (first)
        written = explain_write(r, written, error);
    r->took.files += clock_seconds() - start;
    return first && written != OK ? written : result;
}

static status end_run(struct run *r, status result, struct error *error)
{
    struct store *store = r->sequence->store;
    enum run_status end = result == OK ? RUN_FINISHED : result == ERROR_STOPPED ? RUN_STOPPED : RUN_FAILED;
    struct error ending;
    if (result != OK)
        store_rollback(store);
    status recorded = store_run_end(store, r->recorder.run, end, end == RUN_FAILED ? error->message : NULL, &ending);
    if (result != OK)
        return result; /* the first failure is the one to report */
    if (recorded != OK) {
        *error = ending;
        return recorded;
    }
    return unlink(r->resume) == 0 || errno == ENOENT ? OK : error_errno(error, errno, "%s: cannot remove", r->resume);
}

static void tidy_finished(struct run *r)
{
    struct error ignored;
    if (choose_folder(r, &ignored) == OK)
        checkpoint_remove_finished(r->e, r->resume);
}

/* Reports to watchers of the database (results/store/live.h). */
static void report_to_watchers(void *context, const struct progress_news *news)
{
    const struct run *r = context;
    const struct progress_state *state = news->state;
    struct live live = {.task = (int64_t)state->task,
                        .tasks = (int64_t)r->e->data.task_count,
                        .activity = state->activity,
                        .subject = state->subject != NULL ? state->subject : "",
                        .step = (int64_t)state->step,
                        .steps = (int64_t)state->steps,
                        .loss = isfinite(state->loss) ? state->loss : 0,
                        .images_per_second = news->images_per_second,
                        .seconds_left = news->seconds_left,
                        .done = news->done};
    live_write(r->sequence->store, r->recorder.run, &live);
}

/* Reads the inputs of the run, which identify it. */
static status identify(struct run *r, struct error *error)
{
    struct sequence *s = r->sequence;
    struct surveyor surveyor;
    double start = clock_seconds();
    TRY(image_watch_open(&r->images, r->e, error));
    TRY(surveyor_open(&surveyor, &r->e->settings, r->e->log, s->progress, s->stop, error));
    status result = tasks_survey(r->e, &surveyor, error);
    if (result == OK)
        result = image_watch_after_survey(&r->images, error);
    if (result == OK)
        result = inputs_read(&r->inputs, &surveyor, r->e->suite, r->e, error);
    surveyor_close(&surveyor);
    TRY(result);
    memcpy(r->e->identity, r->inputs.hash, sizeof r->e->identity);
    TRY(continuation_choose(&r->continuation, s->store, r->e, &r->inputs, error));
    memcpy(r->e->identity_before, r->continuation.before, sizeof r->e->identity_before);
    r->took.inputs = clock_seconds() - start;
    return OK;
}

static status work(struct run *r, struct error *error)
{
    struct sequence *s = r->sequence;
    struct cache_progress decoding = {s->progress, s->stop};
    r->e->stop = s->stop;
    progress_listen(s->progress, report_to_watchers, r);
    cache_progress_begin(r->e->data.cache, &decoding);
    status result = record_session(&r->recorder, error);
    if (result == OK)
        result = open_run(r, error);
    if (result == OK)
        result = run_from_place(r, error);
    result = end_files(r, result, error);
    cache_progress_end(r->e->data.cache);
    progress_listen(s->progress, NULL, NULL);
    log_debug(r->e->log,
              "opening took %.3f s, inputs %.3f s, rows and files %.3f s, %.3f s of them within training; training "
              "waited %.3f s for images, tests and selectors %.3f s",
              s->opening_seconds, r->took.inputs, r->took.files, r->took.files_of_training, r->took.images_of_training,
              r->e->waited - r->took.images_of_training);
    return end_run(r, result, error);
}

static status run_identified(struct run *r, struct error *error)
{
    struct run_start start;
    TRY(record_start(&r->recorder, &r->inputs, &r->continuation, &start, error));
    r->sequence->run = start.run;
    if (start.created || start.past != RUN_FINISHED)
        return work(r, error);
    r->sequence->finished_before = true;
    tidy_finished(r);
    return store_run_end(r->sequence->store, start.run, RUN_FINISHED, NULL, error);
}

status sequence_run(struct sequence *sequence, struct error *error)
{
    struct run run = {.sequence = sequence,
                      .e = sequence->experiment,
                      .folder_lock = -1,
                      .saved = clock_seconds(),
                      .recorder = {.store = sequence->store, .experiment = sequence->experiment}};
    status result = identify(&run, error);
    if (result == OK)
        result = run_identified(&run, error);
    close_run(&run);
    return result;
}
