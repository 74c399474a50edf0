/* The course of a method that trains and answers by itself. */
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/scope.h"
#include "harness/run/run.h"
#include "harness/run/session.h"
#include "harness/run/workload.h"

static const struct method_own *own_of(const struct session *s)
{
    return s->run->model.settings.method->own;
}

static status test(struct session *s, int64_t after, size_t j, struct error *error)
{
    SCOPED(test_set_free) struct test_set set = test_set_of(&s->run->data.tasks[j]);
    session_report_evaluation(s, after < 0 ? "zero-shot" : "evaluate", j);
    status result = own_of(s)->test(&s->run->method, after, set.task, set.predicted, error);
    test_set_judge(&set);
    NEXT(result, record_evaluation(&s->recorder, after, &set, false, error));
    return result;
}

/* step: the last one of training. */
static status test_all(struct session *s, int64_t after, size_t first, size_t end, int64_t step, struct error *error)
{
    double start = clock_seconds();
    int64_t images = 0;
    for (size_t j = first; j < end; j++) {
        TRY(test(s, after, j, error));
        images += (int64_t)dataset_size(s->run->data.tasks[j].dataset, SPLIT_TEST);
    }
    return session_record_time(s, after, step, "evaluate", start, 0, images, error);
}

status session_start_own(struct session *s, size_t trained, bool resumed, struct error *error)
{
    const struct own_start start = {
        .folder = s->folder, .stop = s->sequence->stop, .log = s->run->model.log, .trained = trained};
    struct own_facts facts = {0};
    if (trained == s->run->data.task_count)
        return OK;
    TRY(own_of(s)->start(&s->run->method, &start, &facts, error));
    if (facts.parameters > 0)
        TRY(store_run_measure(s->sequence->store, s->recorder.id, (int64_t)facts.parameters, error));
    return facts.zero_shot && !resumed ? test_all(s, -1, 0, s->run->data.task_count, 0, error) : OK;
}

struct reporting {
    struct session *s;
    uint64_t last; /* step that was recorded */
};

static status report(void *context, const struct own_step *step, struct error *error)
{
    struct reporting *r = context;
    struct session *s = r->s;
    double share = step->steps > 0 ? (double)step->step / (double)step->steps : 0;
    s->work.done[WORK_TRAINING] = (double)s->task->index + (share < 1 ? share : 1);
    progress_report(s->sequence->progress, &(struct progress_state){.activity = "train",
                                                                    .subject = s->task->settings.name,
                                                                    .task = s->task->index + 1,
                                                                    .tasks = s->run->data.task_count,
                                                                    .step = step->step,
                                                                    .steps = step->steps,
                                                                    .loss = isfinite(step->loss) ? step->loss : 0,
                                                                    .work = &s->work});
    if (step->step <= r->last)
        return OK;
    r->last = step->step;
    if (isnan(step->loss))
        return OK;
    return store_add(s->sequence->store, s->recorder.id, "steps",
                     NAMED({"task", value_integer((int64_t)s->task->index)},
                           {"iteration", value_integer((int64_t)step->step)}, {"loss", value_real(step->loss)},
                           {"learning_rate", value_real(step->rate)}),
                     error);
}

static status train(struct session *s, uint64_t *steps, struct error *error)
{
    double start = clock_seconds();
    int64_t task = (int64_t)s->task->index;
    struct reporting reporting = {.s = s};
    TRY(report(&reporting, &(struct own_step){.loss = NAN, .rate = NAN}, error));
    TRY(own_of(s)->train(&s->run->method, s->task, report, &reporting, error));
    *steps = reporting.last;
    s->work.done[WORK_TRAINING] = (double)(task + 1);
    return session_record_time(s, task, (int64_t)*steps, "train", start, (int64_t)*steps, 0, error);
}

status session_run_own(struct session *s, size_t first, struct error *error)
{
    size_t tasks = s->run->data.task_count;
    for (size_t k = first; k < tasks; k++) {
        size_t begin, end;
        uint64_t steps;
        s->task = &s->run->data.tasks[k];
        workload_tested(s->run, k, &begin, &end);
        TRY(train(s, &steps, error));
        TRY(test_all(s, (int64_t)k, begin, end, (int64_t)steps, error));
        TRY(own_of(s)->save(&s->run->method, s->task, error));
        TRY(session_save_place(s, k + 1, 0, error));
        if (stop_requested(s->sequence->stop) && k + 1 < tasks)
            return error_set(error, ERROR_STOPPED, "stopped after task %zu of %zu", k + 1, tasks);
    }
    return first < tasks ? own_of(s)->end(&s->run->method, error) : OK;
}
