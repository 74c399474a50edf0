/* The training of a task, its rows and its resume points. */
#include <math.h>

#include "core/clock.h"
#include "harness/run/run.h"
#include "harness/run/session.h"
#include "harness/run/workload.h"
#include "harness/train/guard.h"
#include "harness/train/trainer.h"

enum { WORTH_KEEPING_SECONDS = 30 };

static bool wants_loss(void *context, size_t iteration, size_t iterations)
{
    const struct session *s = context;
    return iteration == 1 || iteration == iterations || iteration % s->run->model.settings.log_every == 0;
}

static status after_iteration(void *context, const struct step_report *report, struct error *error)
{
    struct session *s = context;
    size_t task = s->task->index, every = s->run->model.settings.checkpoint_every;
    TRY(session_check_file(s, error));
    TRY(record_changes(&s->recorder, task, report->iteration, error));
    if (report->looked) {
        s->last_loss = isfinite(report->loss) ? report->loss : s->last_loss;
        TRY(store_add(s->sequence->store, s->recorder.id, "steps",
                      NAMED({"task", value_integer((int64_t)task)},
                            {"iteration", value_integer((int64_t)report->iteration)},
                            {"loss", value_real(report->loss)}, {"learning_rate", value_real(report->rate)},
                            {"balance_loss", value_real(report->balance)}, {"accuracy", value_real(report->accuracy)}),
                      error));
    }
    s->work.done[WORK_TRAINING] = s->before + (double)report->iteration * s->iteration;
    progress_report(s->sequence->progress, &(struct progress_state){.activity = "train",
                                                                    .subject = s->task->settings.name,
                                                                    .task = task + 1,
                                                                    .tasks = s->run->data.task_count,
                                                                    .step = report->iteration,
                                                                    .steps = report->iterations,
                                                                    .loss = s->last_loss,
                                                                    .images = report->images,
                                                                    .work = &s->work});
    size_t sketched = s->run->model.settings.trajectory_every;
    if (sketched > 0 && report->iteration % sketched == 0 && report->iteration < report->iterations)
        TRY(record_sketches(&s->recorder, task, report->iteration, error));
    /* A long training is saved before selector and evaluation, which follow the last iteration. */
    bool last = report->iteration == report->iterations,
         worth_keeping = last && clock_seconds() - s->saved > WORTH_KEEPING_SECONDS;
    bool due = !last && every > 0 && report->iteration % every == 0;
    if (!due && !worth_keeping && !stop_requested(s->sequence->stop))
        return OK;
    TRY(guard_check(&s->run->model, s->task, report->iteration, error));
    return session_save_place(s, task, report->iteration, error);
}

static status record_skipped_steps(struct session *s, size_t task, struct error *error)
{
    size_t steps, first;
    TRY(guard_skipped(&s->run->model, &steps, &first, error));
    if (steps == 0)
        return OK;
    log_warn(
        s->run->model.log,
        "%s: %zu of %zu iterations were left out, the first of them iteration %zu: their loss or gradients were not "
        "finite (training.on_nan=skip)",
        s->task->settings.name, steps, s->task->settings.iterations, first);
    return store_add(s->sequence->store, s->recorder.id, "skipped_steps",
                     NAMED({"task", value_integer((int64_t)task)}, {"steps", value_integer((int64_t)steps)}), error);
}

status session_train(struct session *s, size_t task, size_t first, struct error *error)
{
    double start = clock_seconds(), waited = s->run->model.waited, files = s->took.files;
    s->iteration = workload_iteration(s->run, s->task);
    s->before = s->work.done[WORK_TRAINING] - (double)first * s->iteration;
    struct training training = {.run = &s->run->method,
                                .task = s->task,
                                .first = first,
                                .stop = s->sequence->stop,
                                .wants_loss = wants_loss,
                                .after = after_iteration,
                                .context = s};
    TRY(train_task(&training, error));
    s->took.images_of_training += s->run->model.waited - waited;
    s->took.files_of_training += s->took.files - files;
    s->work.done[WORK_TRAINING] = s->before + workload_training(s->run, s->task);
    size_t iterations = s->task->settings.iterations;
    s->sequence->training_seconds += clock_seconds() - start;
    s->sequence->iterations += iterations - first;
    TRY(record_changes(&s->recorder, task, iterations, error));
    if (s->run->method.asking > 0)
        TRY(session_record_time(s, (int64_t)task, (int64_t)iterations, "merge_policy",
                                clock_seconds() - s->run->method.asking, 0, 0, error));
    s->run->method.asking = 0;
    TRY(record_counts(&s->recorder, task, error));
    TRY(record_sketches(&s->recorder, task, iterations + 1, error));
    TRY(record_skipped_steps(s, task, error));
    return session_record_time(s, (int64_t)task, (int64_t)iterations, "train", start, (int64_t)(iterations - first), 0,
                               error);
}
