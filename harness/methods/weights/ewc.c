/* Elastic weight consolidation, online (Kirkpatrick et al., PNAS 2017, arXiv 1612.00796; Schwarz et al., ICML 2018, arXiv
 * 1805.06370), over all weights of both towers:
 *
 *     loss = cross-entropy + lambda / 2 · Σ F (θ − θ*)²
 *     after each task: F ← gamma · F + (1 / N) Σ g²,  θ* ← θ        F = 0 and no penalty in the first task
 *
 * g are the gradients of the cross-entropy, without the penalty, of the training batches in the last N =
 * min(fisher_iterations, iterations of the task) iterations: training augmentation, true labels, smoothed as in training.
 * An iteration that training.on_nan skips adds 0. Avalanche's code squares gradients of batches too, but in a pass over the
 * task at its end; the papers square those of single images, whose F is larger by about the batch size, which lambda makes
 * up for. No paper gives a lambda for CLIP, and the default is not tuned.
 *
 * The penalty is added in before_update, where the gradients are summed over the GPUs and still the cross-entropy's alone.
 */
#include "harness/methods/weights/start.h"
#include "harness/model/model.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "lambda", 0, 1e9, "1000", "strength of the penalty"),
    OPTION_NUMBER(REAL, "gamma", 0, 1, "0.9", "factor of the earlier importances when a task adds its own"),
    OPTION_NUMBER(INTEGER, "fisher_iterations", 1, 1e9, "100",
                  "iterations at the end of a task whose squared gradients give the importances"),
    {0}};

struct state {
    struct average anchor;              /* θ*; count 0: no task has ended */
    float *fisher, *squares, *gradient; /* device; squares: of the task so far */
    int32_t counted;                    /* gradients in squares */
};

static status zero(const struct parameters *group, float *values, struct error *error)
{
    return group->backend->ops->zero(group->backend, values, group->values_count * sizeof *values, error);
}

static status open_state(struct method_run *run, struct error *error)
{
    struct state *s = run->state;
    struct parameters *group = weights_of(run);
    float **const places[] = {&s->fisher, &s->squares, &s->gradient};
    TRY(average_open(&s->anchor, group, run->memory, error));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct tensor values;
        TRY(tensor_take(&values, run->memory, TENSOR_F32, "importances", 1, &group->values_count, error));
        *places[i] = values.data;
    }
    return zero(group, s->fisher, error);
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct state *s = run->state;
    if (resumed && s->counted > 0)
        return OK;
    TRY(zero(weights_of(run), s->squares, error));
    return resumed ? OK : trained_groups_reset(run->model, error);
}

static bool is_counted(const struct method_run *run, const struct task *task, size_t iteration)
{
    return iteration + method_whole(run, "fisher_iterations") > task->settings.iterations;
}

static status before_update(struct method_run *run, const struct task *task, size_t iteration, struct error *error)
{
    struct state *s = run->state;
    struct parameters *group = weights_of(run);
    if (is_counted(run, task, iteration))
        TRY(group->backend->ops->copy(group->backend, s->gradient, group->gradients,
                                      group->values_count * sizeof *s->gradient, error));
    if (s->anchor.count == 0)
        return OK;
    return penalty_add(group, s->anchor.values, s->fisher, (float)options_real(run->options, "lambda") / 2,
                       run->model->loss, error);
}

/* The guard knows by now whether the step was left out. */
static status after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *error)
{
    struct state *s = run->state;
    struct parameters *group = weights_of(run);
    if (!is_counted(run, task, iteration))
        return OK;
    s->counted++;
    return group->backend->ops->multiply(group->backend,
                                         &(struct multiply){.n = group->values_count,
                                                            .a = s->gradient,
                                                            .b = s->gradient,
                                                            .out = s->squares,
                                                            .accumulate = true,
                                                            .guard = run->model->guard},
                                         error);
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct state *s = run->state;
    struct parameters *group = weights_of(run);
    float gamma = (float)options_real(run->options, "gamma"), share = 1.0f / (float)s->counted;
    s->counted = 0;
    TRY(group->backend->ops->weighted_sum(group->backend,
                                          &(struct weighted_sum){.count = 2,
                                                                 .n = group->values_count,
                                                                 .inputs = {s->fisher, s->squares},
                                                                 .weights = {gamma, share},
                                                                 .out = s->fisher},
                                          error));
    return average_start(&s->anchor, group, error);
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct state *s = run->state;
    size_t n = weights_of(run)->values_count;
    TRY(average_keep(&s->anchor, weights_of(run), "ewc.anchor", serializer, error));
    TRY(serializer_host(serializer, "ewc.counted", SAFETENSOR_I32, 1, &s->counted, error));
    if (s->anchor.count > 0)
        TRY(serializer_device(serializer, "ewc.fisher", SAFETENSOR_F32, n, s->fisher, error));
    return s->counted > 0 ? serializer_device(serializer, "ewc.squares", SAFETENSOR_F32, n, s->squares, error) : OK;
}

const struct method method_ewc = {.name = "ewc",
                                  .source = "Kirkpatrick et al., PNAS 2017; online, Schwarz et al., ICML 2018",
                                  .formula = "loss = cross-entropy + lambda / 2 · Σ F (θ − θ_{t−1})²; after each task "
                                             "F ← gamma · F + mean of g², g the gradients of its last batches",
                                  .options = options,
                                  .state_size = sizeof(struct state),
                                  .trains = GROUPS_TOWERS,
                                  .open = open_state,
                                  .begin_task = begin_task,
                                  .before_update = before_update,
                                  .after_step = after_step,
                                  .end_task = end_task,
                                  .keep = keep};
