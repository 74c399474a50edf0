/* ZSCL (Zheng et al., ICCV 2023, arXiv 2303.06628):
 *
 *     loss = cross-entropy + D(t, s) + D(tᵀ, sᵀ) + l2 · Σ (θ − θ_start)²
 *
 * The teacher is the initial model of the run, on reference images and sentences from outside the tasks (ImageNet and
 * Conceptual Captions in the paper). After iterations 0, E, 2E, … (counted from 0) the weights join a running mean that
 * begins with the starting weights of the task. The mean is evaluated and starts the next task; training within the
 * task continues from the raw weights. The public code runs, and averages after, one extra iteration, as with
 * training.reference_iterations, and its mean rounds the untrained logit_scale.
 */
#include "harness/methods/weights/guided.h"
#include "harness/methods/weights/start.h"
#include "harness/train/replicas.h"
#include "harness/train/services/references.h"

static const struct option options[] = {
    GUIDED_OPTIONS,
    OPTION(FOLDER, "reference_images", NULL, "folder of reference images, at any depth"),
    OPTION(FILE, "reference_texts", NULL, "text file of reference sentences, one per line"),
    OPTION(TEXT, "reference_column", NULL,
           "column of reference_texts with the sentences, where tabs separate columns: its number from 1, or its name "
           "in the first line"),
    OPTION_NUMBER(REAL, "l2", 0, 1e6, "1", "strength of the penalty towards the task's starting weights"),
    OPTION_NUMBER(INTEGER, "average_every", 1, 1e9, "100", "iterations between the weights that are averaged"),
    {0}};

struct state {
    struct guided guided;
    struct reference_texts texts;
    struct average start, mean;
};

/* Not needed with recorded references. */
static status require(const struct method_run *run, const char *key, const char *expected, struct error *error)
{
    if (options_text(run->options, key) != NULL || run->data->recorded != NULL)
        return OK;
    return error_set(error, ERROR_ARGUMENT, "method.%s: expected %s, as method zscl needs, found none", key, expected);
}

static status open_references(struct method_run *run, struct error *error)
{
    struct state *s = run->state;
    TRY(require(run, "reference_images", "a folder of images", error));
    TRY(require(run, "reference_texts", "a text file with one sentence per line", error));
    if (guided_open(run, options_text(run->options, "reference_images"), error) != OK)
        return error_context(error, "method.reference_images");
    if (reference_texts_read(&s->texts, run, options_text(run->options, "reference_texts"),
                             options_text(run->options, "reference_column"), error) != OK)
        return error_context(error, "method.reference_texts");
    TRY(average_open(&s->start, weights_of(run), run->memory, error));
    return average_open(&s->mean, weights_of(run), run->memory, error);
}

static void close_references(struct method_run *run)
{
    struct state *s = run->state;
    reference_texts_free(&s->texts);
    guided_close(run);
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct state *s = run->state;
    if (!resumed) {
        TRY(average_start(&s->start, weights_of(run), error));
        TRY(average_start(&s->mean, weights_of(run), error));
    }
    return guided_begin_task(run, task, resumed, s->texts.tokens, s->texts.count, error);
}

static status loss(struct method_run *run, const struct task *task, const struct batch *batch, struct error *error)
{
    struct state *s = run->state;
    float strength = replicas_weight(run->model) * (float)options_real(run->options, "l2");
    TRY(guided_loss(run, task, batch, error));
    return penalty_add(weights_of(run), s->start.values, NULL, strength, run->model->loss, error);
}

static status after_step(struct method_run *run, const struct task *task, size_t iteration, struct error *error)
{
    struct state *s = run->state;
    if ((iteration - 1) % method_whole(run, "average_every") == 0)
        TRY(average_add(&s->mean, weights_of(run), error));
    return guided_after_step(run, task, iteration, error);
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct state *s = run->state;
    s->start.count = 0;
    TRY(average_apply(&s->mean, weights_of(run), 0, error));
    return guided_end_task(run, task, error);
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct state *s = run->state;
    TRY(guided_keep(run, serializer, error));
    TRY(average_keep(&s->start, weights_of(run), "zscl.start", serializer, error));
    return average_keep(&s->mean, weights_of(run), "zscl.mean", serializer, error);
}

const struct method method_zscl = {
    .name = "zscl",
    .source = "ZSCL, ICCV 2023",
    .formula = "loss = cross-entropy + image_weight · D(t, s) + text_weight · D(tᵀ, sᵀ) + l2 · Σ (θ − θ_{t−1})²; t: "
               "similarities of outside images and texts in θ_0, D as in lwf; θ_t: running mean over the task",
    .options = options,
    .loss_repeats = true,
    .state_size = sizeof(struct state),
    .trains = GROUPS_TOWERS,
    .open = open_references,
    .close = close_references,
    .cost = guided_cost,
    .begin_task = begin_task,
    .loss = loss,
    .after_step = after_step,
    .end_task = end_task,
    .keep = keep};
