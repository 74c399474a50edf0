#include "harness/run/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/scope.h"
#include "harness/run/layer_choice.h"
#include "harness/run/run.h"
#include "harness/run/workload.h"
#include "harness/scenario/data.h"
#include "harness/selectors/selector.h"

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
    TRY(session_open_folder(s, error));
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
    TRY(session_go_back(s, place, &resumed, error));
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
    session_tidy_finished(s);
    return store_run_end(s->sequence->store, start.run, RUN_FINISHED, NULL, error);
}

static status begin(struct session *s, struct checkpoint_place *place, struct error *error)
{
    s->run->model.stop = s->sequence->stop;
    progress_listen(s->sequence->progress, session_report_live, s);
    cache_progress_begin(s->run->data.cache, &s->decoding);
    TRY(record_session(&s->recorder, error));
    TRY(open_session(s, error));
    return resume(s, place, error);
}

static status end(struct session *s, status result, struct error *error)
{
    NEXT(result, finish(s, error));
    result = session_finish_files(s, result, error);
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
