#include <stdlib.h>

#include "core/clock.h"
#include "core/file.h"
#include "core/scope.h"
#include "harness/run/run.h"
#include "harness/run/session.h"
#include "harness/run/workload.h"
#include "harness/selectors/saved_adapters.h"
#include "harness/selectors/selector.h"

void session_report_evaluation(struct session *s, const char *activity, size_t j)
{
    progress_report(s->sequence->progress,
                    &(struct progress_state){.activity = activity,
                                             .task = s->task != NULL ? s->task->index + 1 : 0,
                                             .tasks = s->task != NULL ? s->run->data.task_count : 0,
                                             .step = j + 1,
                                             .steps = s->run->data.task_count,
                                             .work = &s->work});
}

status session_zero_shot_row(struct session *s, bool record, struct error *error)
{
    double start = clock_seconds();
    int64_t images = 0;
    if (!s->run->model.head->of_texts)
        return OK;
    for (size_t j = 0; j < s->run->data.task_count; j++) {
        if (!record &&
            s->run->model.groups & GROUPS_WEIGHTS) { /* the weights have been trained, and the result is not needed */
            s->work.done[WORK_EVALUATION] += workload_zero_shot(s->run, j);
            continue;
        }
        session_report_evaluation(s, "zero-shot", j);
        TRY(evaluator_zero_shot(s->evaluator, j, s->sequence->stop, error));
        if (record)
            TRY(record_evaluation(&s->recorder, -1, &s->evaluator->sets[j], false, error));
        images += (int64_t)s->evaluator->sets[j].n;
        s->work.done[WORK_EVALUATION] += workload_zero_shot(s->run, j);
    }
    return record ? session_record_time(s, -1, 0, "evaluate", start, 0, images, error) : OK;
}

static status evaluate_task(struct session *s, size_t checkpoint, size_t j, struct error *error)
{
    const struct settings *settings = &s->run->model.settings;
    bool adapters = s->run->model.groups & GROUP_ADAPTERS && groups_beside_towers(s->run->model.groups),
         prefixes = s->run->model.groups & GROUP_PREFIXES,
         own_routers = settings->adapter.tasks == settings->task_count;
    session_report_evaluation(s, "evaluate", j);
    if (adapters && settings->method->alone)
        TRY(evaluator_with_router(s->evaluator, j, adapters_router(&settings->adapter, checkpoint), s->sequence->stop,
                                  error));
    else
        TRY(evaluator_task(s->evaluator, checkpoint, j, s->sequence->stop, error));
    return record_evaluation(&s->recorder, (int64_t)checkpoint, &s->evaluator->sets[j],
                             (adapters && own_routers) || prefixes, error);
}

/* Whether tasks that are tested now are tested for the last time, in a run that keeps something of each image. */
static bool is_last_test(const struct session *s, size_t checkpoint)
{
    return s->run->model.settings.per_image != PER_IMAGE_NONE &&
           (s->run->model.settings.method->alone || checkpoint + 1 == s->run->data.task_count);
}

/* From task `from` on. */
static status matrix_row(struct session *s, size_t checkpoint, size_t from, struct error *error)
{
    double start = clock_seconds();
    int64_t images = 0;
    size_t first, end;
    workload_tested(s->run, checkpoint, &first, &end);
    TRY(evaluator_refresh(s->evaluator, error));
    s->evaluator->labels.seen = checkpoint + 1;
    s->evaluator->counts_experts = is_last_test(s, checkpoint);
    for (size_t j = first > from ? first : from; j < end; j++) {
        TRY(evaluate_task(s, checkpoint, j, error));
        s->work.done[WORK_EVALUATION] += workload_evaluation(s->run, checkpoint, j);
        images += (int64_t)s->evaluator->sets[j].n;
    }
    return session_record_time(s, (int64_t)checkpoint, (int64_t)s->task->settings.iterations, "evaluate", start, 0,
                               images, error);
}

status session_train_selector(struct session *s, size_t task, struct error *error)
{
    if (s->selector == NULL)
        return OK;
    double start = clock_seconds();
    size_t steps = s->selector->steps;
    TRY(selector_train(s->selector, &s->run->data.tasks[task], s->sequence->stop, error));
    TRY(record_threshold(&s->recorder, s->selector, task, error));
    s->work.done[WORK_SELECTOR] += workload_selector(s->run, &s->run->data.tasks[task]);
    return session_record_time(s, (int64_t)task, (int64_t)s->run->data.tasks[task].settings.iterations, "selector",
                               start, (int64_t)(s->selector->steps - steps), 0, error);
}

static status save_weights(struct session *s, size_t task, struct error *error)
{
    enum checkpoints keep = s->run->model.settings.checkpoints;
    if (keep == CHECKPOINTS_NONE || s->run->model.groups == GROUPS_NONE)
        return OK;
    bool adapters = groups_beside_towers(s->run->model.groups);
    double start = clock_seconds();
    const char *kind = adapters ? "adapters" : "weights";
    bool all = keep != CHECKPOINTS_LAST;
    OWNED char *path = all ? path_format("%s/task%02zu.%s.safetensors", s->folder, task, kind)
                           : path_format("%s/%s.safetensors", s->folder, kind);
    status result = adapters ? saved_adapters_write(&s->run->model, &s->run->data, s->selector, task, path, error)
                             : s->run->model.head->save(&s->run->model, &s->run->data, path, error);
    NEXT(result, record_file(&s->recorder, all ? (int64_t)task : -1, kind, path, error));
    s->took.files += clock_seconds() - start;
    return result;
}

status session_evaluate_and_save(struct session *s, size_t task, size_t from, struct error *error)
{
    const struct method *method = s->run->model.settings.method;
    if (method->evaluation_begin != NULL)
        TRY(method->evaluation_begin(&s->run->method, error));
    TRY(matrix_row(s, task, from, error));
    TRY(save_weights(s, task, error));
    return method->evaluation_end != NULL ? method->evaluation_end(&s->run->method, error) : OK;
}
