#include "harness/train/trainer.h"

#include <math.h>

#include "harness/model/model.h"
#include "harness/train/batches.h"
#include "harness/train/guard.h"
#include "harness/train/image_pass.h"
#include "harness/train/replicas.h"
#include "models/clip/cost.h"
#include "models/optimizers/optimizer.h"

/* --- The loss: both towers forward, the loss between them, both towers backward --- */

struct classification {
    struct model *model;
    struct tensor images;
    struct encoding encoding;
    struct tower_pass pass;
    struct tensor features;
    struct head_batch scored;
};

static status encode_images(void *context, struct error *error)
{
    struct classification *c = context;
    return clip_encode_images(c->model->clip, &c->encoding, &c->images, &c->pass, &c->features, error);
}

static status encode_classes(void *context, struct error *error)
{
    struct classification *c = context;
    struct model *model = c->model;
    return model->head->encode != NULL ? model->head->encode(model, &model->classes, &c->scored, error) : OK;
}

static status images_backward(void *context, struct error *error)
{
    const struct classification *c = context;
    return c->encoding.training
               ? clip_encode_backward(c->model->clip, &c->encoding, &c->pass, &c->scored.dfeatures, error)
               : OK;
}

static status classes_backward(void *context, struct error *error)
{
    const struct classification *c = context;
    const struct head *head = c->model->head;
    return head->backward != NULL ? head->backward(c->model, &c->scored, error) : OK;
}

/* Balance losses of both towers are added to one number, so the towers take turns. */
static status encode(struct classification *c, struct error *error)
{
    const struct model *model = c->model;
    struct branches towers = {{{encode_images, c}, {encode_classes, c}}};
    if (!(model->groups & GROUP_ADAPTERS) || model->adapters->settings.balance == BALANCE_NONE)
        return model->backend->ops->branches(model->backend, &towers, error);
    TRY(encode_images(c, error));
    return encode_classes(c, error);
}

status classification_loss(struct method_run *run, const struct task *task, const struct batch *batch,
                           struct error *error)
{
    struct model *model = run->model;
    float share = batch->count == batch->total ? 1.0f : (float)batch->count / (float)batch->total;
    struct classification c = {.model = model,
                               .images = batch->images,
                               .scored = {.labels = &batch->labels,
                                          .smoothing = task->settings.smoothing,
                                          .weight = share,
                                          .contrastive = task->settings.contrastive}};
    struct branches backward = {{{images_backward, &c}, {classes_backward, &c}}};
    c.scored.features = &c.features;
    if (batch->count == 0)
        return OK;
    trained_encoding(model, TOWER_IMAGE, model->routers, &c.encoding);
    c.encoding.first = batch->first;
    if (model->groups & GROUP_ADAPTERS)
        adapters_add_loss(model->adapters, model->loss, model->loss + 1, share);
    TRY(encode(&c, error));
    TRY(model->head->loss(model, &model->classes, &c.scored, error));
    return model->backend->ops->branches(model->backend, &backward, error);
}

/* --- Iterations --- */

static status update(struct model *model, const struct task *task, struct error *error)
{
    struct update_rule rule = guard_rule(model, task, task->settings.rule);
    struct trained_group group;
    if (model->groups & GROUP_ADAPTERS)
        TRY(adapters_before_update(model->adapters, &rule, error));
    for (size_t i = 0; trained_group_at(model, i, &group); i++)
        TRY(parameters_step(group.parameters, model->state, &rule, error));
    return OK;
}

/* The iterations of a task. */
struct iterations {
    const struct training *training;
    struct method_run *run;
    struct model *model; /* the run's */
    const struct task *task;
    struct batches *batches;
    struct batch batch;
    struct arena_mark start;  /* of the step's memory after the batch */
    struct repeated repeated; /* compute; a batch counts with all shares */
    status (*loss)(struct method_run *run, const struct task *task, const struct batch *batch, struct error *error);
};

/* Loss and gradients of the batch. */
static status compute(void *context, struct error *error)
{
    struct iterations *i = context;
    struct model *model = i->model;
    arena_release(&model->step_memory, i->start); /* start again after a recording that failed */
    TRY(model->backend->ops->zero(model->backend, model->loss, LOSS_TERMS * sizeof *model->loss, error));
    return i->loss(i->run, i->task, &i->batch, error);
}

/* Host memory is checked after every step, device memory when the host waits for the device anyway. */
static status look(const struct iterations *i, struct step_report *report, struct error *error)
{
    struct model *model = i->model;
    const struct training *training = i->training;
    float loss[LOSS_TERMS];
    report->loss = report->balance = report->accuracy = NAN;
    report->looked =
        training->wants_loss != NULL && training->wants_loss(training->context, report->iteration, report->iterations);
    if (report->looked || !model->backend->asynchronous)
        TRY(guard_check_steps(model, i->task, error));
    if (!report->looked)
        return OK;
    TRY(model->backend->ops->download(model->backend, loss, model->loss, sizeof loss, error));
    report->loss = (double)loss[0];
    if (model->groups & GROUP_ADAPTERS && model->adapters->settings.balance != BALANCE_NONE)
        report->balance = (double)loss[1];
    if (loss[LOSS_RIGHT + 1] > 0)
        report->accuracy = (double)loss[LOSS_RIGHT] / (double)loss[LOSS_RIGHT + 1];
    return OK;
}

/* Meets the other ranks. */
static status meet(const struct iterations *i, size_t step, struct error *error)
{
    struct replicas *replicas = i->model->work.replicas;
    return replicas == NULL || replicas_agree(replicas)
               ? OK
               : error_set(error, ERROR_STOPPED, "%s: another GPU stopped before iteration %zu", i->task->settings.name,
                           step + 1);
}

static status one_iteration(struct iterations *i, size_t step, struct step_report *report, struct error *error)
{
    struct model *model = i->model;
    const struct method *method = model->settings.method;
    struct schedule schedule = {i->task->settings.rate, i->task->settings.warmup, i->task->settings.schedule_end};
    report->rate = schedule_rate(&schedule, step);
    arena_reset(&model->step_memory);
    TRY(batches_take(i->batches, &i->batch, error));
    i->start = arena_mark(&model->step_memory);
    TRY(meet(i, step, error));
    TRY(model_set_step(model, i->task->index, step, report->rate, error));
    TRY(guard_begin_step(model, i->task, error));
    TRY(replicas_begin_step(model, i->batch.count > 0, error));
    if (i->batch.count > 0 || method->loss != NULL)
        TRY(repeated_run(&i->repeated, i->batch.total, error));
    TRY(meet(i, step, error));
    TRY(replicas_share(model, error));
    if (method->before_update != NULL)
        TRY(method->before_update(i->run, i->task, step + 1, error));
    TRY(guard_end_step(model, i->task, error));
    TRY(update(model, i->task, error));
    batches_advance(i->batches);
    report->images += i->batch.total;
    report->iteration = step + 1;
    if (method->after_step != NULL)
        TRY(method->after_step(i->run, i->task, step + 1, error));
    return look(i, report, error);
}

static status run_iterations(struct iterations *i, struct error *error)
{
    const struct training *training = i->training;
    struct step_report report = {.iterations = i->task->settings.iterations};
    for (size_t step = training->first; step < report.iterations; step++) {
        TRY(one_iteration(i, step, &report, error));
        if (training->after != NULL)
            TRY(training->after(training->context, &report, error));
        if (step + 1 < report.iterations && stop_requested(training->stop))
            return error_set(error, ERROR_STOPPED, "%s: stopped after iteration %zu of %zu", i->task->settings.name,
                             step + 1, report.iterations);
    }
    return guard_check(i->model, i->task, report.iterations, error);
}

/* Adds the size of a step to the message, so that the user can judge which setting to lower. */
static status add_need(const struct model *model, const struct task *task, struct error *error)
{
    const struct clip_dimensions *n = &model->clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &model->settings.adapter);
    const struct texts *texts = &model->classes.texts;
    size_t images = loader_share_of(task->settings.batch, model->work.rank, model->work.ranks).count,
           bytes = cost_step_bytes(n, images, texts->count, texts->positions, &experts, model->backend->precision);
    return error_context(error, "%s: a step of %zu images and %zu prompts takes about %zu MiB", task->settings.name,
                         images, texts->count, (bytes >> 20) + 1);
}

status train_begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct model *model = run->model;
    const struct method *method = model->settings.method;
    int32_t router =
        model->adapters != NULL ? adapters_router(&model->adapters->settings, task->index) : (int32_t)task->index;
    arena_reset(&model->task_memory);
    TRY(model->head->begin_task(model, task, router, &model->task_memory, &model->classes, error));
    TRY(model_fill(model, &model->task_memory, task->settings.batch, router, &model->routers, error));
    return method->begin_task != NULL ? method->begin_task(run, task, resumed, error) : OK;
}

/* The iterations of one rank. */
static status train_share(const struct training *training, struct error *error)
{
    struct method_run *run = training->run;
    struct model *model = run->model;
    const struct task *task = training->task;
    const struct method *method = model->settings.method;
    struct iterations iterations = {.training = training,
                                    .run = run,
                                    .model = model,
                                    .task = task,
                                    .loss = method->loss != NULL ? method->loss : classification_loss};
    iterations.repeated = (struct repeated){.backend = model->backend,
                                            .log = model->log,
                                            .name = task->settings.name,
                                            .what = "iterations",
                                            .body = compute,
                                            .context = &iterations,
                                            .plainly = method->loss != NULL && !method->loss_repeats};
    TRY(train_begin_task(run, task, training->first > 0, error));
    TRY(batches_open_task(&iterations.batches, model, run->data, task, training->first, task->settings.iterations,
                          error));
    status result = run_iterations(&iterations, error);
    repeated_close(&iterations.repeated);
    batches_close(iterations.batches);
    return result == ERROR_MEMORY ? add_need(model, task, error) : result;
}

status train_task(const struct training *training, struct error *error)
{
    struct method_run *run = training->run;
    struct model *model = run->model;
    const struct task *task = training->task;
    const struct method *method = model->settings.method;
    if (model->adapters != NULL && model->adapters->settings.place.blocks.rule == BLOCKS_BY_SCORE)
        return error_set(error, ERROR_ARGUMENT, "%s: adapter.blocks: the scores have not chosen any blocks yet",
                         task->settings.name);
    if (training->first == 0)
        TRY(guard_begin_task(model, error));
    if (model->groups != GROUPS_NONE) {
        TRY(replicas_start(model->work.replicas, training, train_share, error));
        TRY(replicas_finish(model->work.replicas, train_share(training, error), error));
    }
    return method->end_task != NULL ? method->end_task(run, task, error) : OK;
}
