/* Deep Mutual Learning (Zhang et al., CVPR 2018, arXiv 1706.00384) of two networks, each an image tower and its layer:
 *
 *     loss = CE(p1) + KL(p2 ‖ p1) + CE(p2) + KL(p1 ‖ p2)       p: softmax of the scores; the other's p gets no gradient
 *
 * Both take a step on every batch, from predictions of before it; in the paper the second sees what the first has learned from the
 * batch. In place of the divergences the loss has cross-entropies of the same gradient. The mean of p1 and p2 answers, or one of
 * them. With shared_blocks n the embedding and the first n blocks are one, which both train.
 *
 * The second's layer is drawn, normal with standard deviation 0.02: towers from weights, and those that share all blocks, start
 * alike, and with layers from zero they would stay so. From scratch the towers are drawn apart. The weights that are saved are the
 * first's.
 */
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "core/scope.h"
#include "harness/methods/methods.h"
#include "harness/train/batches.h"
#include "models/clip/cost.h"
#include "models/vit.h"

enum answer { ANSWER_ENSEMBLE, ANSWER_FIRST, ANSWER_SECOND };

static const struct option options[] = {
    OPTION_NUMBER(INTEGER, "shared_blocks", 0, CLIP_BLOCKS_MOST, "0",
                  "first blocks that both share, with the embedding; 0: nothing"),
    OPTION_ONE_OF("answer", "ensemble|first|second", "ensemble",
                  "answer: the mean of both networks' probabilities, or one network's"),
    {0}};

struct state {
    bool swapped; /* the second network is the model's, and the first is its peer */
};

/* --- The second network --- */

/* What is not used is not updated. */
static status share(struct clip *peer, const struct clip *clip, size_t blocks, struct error *error)
{
    const int32_t flags[CLIP_FLAGS] = {[CLIP_FLAG_IMAGE] = 1};
    struct parameters *group = peer->parameters;
    for (size_t i = 0; i < group->count; i++)
        if (clip_is_first(group->list[i].name, blocks))
            TRY(parameters_govern(group, &group->list[i], CLIP_FLAG_TEXT, error));
    TRY(peer->backend->ops->upload(peer->backend, group->flags, flags, sizeof flags, error));
    if (blocks == 0)
        return OK;
    peer->conv1 = clip->conv1;
    peer->patch_bias = clip->patch_bias;
    peer->class_embedding = clip->class_embedding;
    peer->image_position = clip->image_position;
    peer->ln_pre = clip->ln_pre;
    for (size_t b = 0; b < blocks; b++)
        peer->towers[TOWER_IMAGE].blocks[b] = clip->towers[TOWER_IMAGE].blocks[b];
    return OK;
}

static status draw_layer(const struct model *model, struct error *error)
{
    const struct parameter *weight = &model->peer_head->parameters->list[0];
    struct rng rng = rng_make(~model->seed, RNG_INIT, 0, 0);
    OWNED float *values = xmalloc(array_size(weight->size, sizeof *values));
    for (size_t i = 0; i < weight->size; i++)
        values[i] = VIT_START_DEVIATION * rng_normal(&rng, i);
    return parameters_upload(model->peer_head->parameters, weight, values, error);
}

static status open_peer(struct method_run *run, struct error *error)
{
    struct model *model = run->model;
    const struct linear_head *head = model->head_state;
    enum parameters_mode mode = model->settings.one_moment ? PARAMETERS_TRAINED_ONE_MOMENT : PARAMETERS_TRAINED;
    struct vit_settings settings = vit_settings_of(model->clip);
    size_t blocks = method_whole(run, "shared_blocks");
    TRY(clip_check_first(model->clip, blocks, "method.shared_blocks", error));
    TRY(vit_create(&model->peer, model->backend, run->memory, &settings, mode, error));
    TRY(linear_head_create(&model->peer_head, model->backend, run->memory, head->linear.in, head->linear.out, mode,
                           error));
    TRY(model->settings.scratch.width > 0 ? vit_initialize(model->peer, ~model->seed, error)
                                          : vit_copy_image_tower(model->peer, model->clip, error));
    TRY(draw_layer(model, error));
    return share(model->peer, model->clip, blocks, error);
}

static void swap(struct method_run *run, bool second)
{
    struct state *s = run->state;
    struct model *model = run->model;
    struct clip *clip = model->clip;
    struct linear_head *head = model->head_state;
    if (s->swapped == second)
        return;
    s->swapped = second;
    model->clip = model->peer;
    model->head_state = model->peer_head;
    model->peer = clip;
    model->peer_head = head;
}

static void close_peer(struct method_run *run)
{
    swap(run, false);
    linear_head_destroy(run->model->peer_head);
    clip_destroy(run->model->peer);
    run->model->peer_head = NULL;
    run->model->peer = NULL;
}

/* --- Training --- */

struct network {
    struct clip *clip;
    const struct linear_head *head;
    struct encoding encoding;
    struct tower_pass pass;
    struct tensor features;
    struct linear_pass scored;
};

static status forward(struct network *n, struct method_run *run, const struct batch *batch, struct error *error)
{
    trained_encoding(run->model, TOWER_IMAGE, run->model->routers, &n->encoding);
    n->encoding.first = batch->first;
    TRY(clip_encode_images(n->clip, &n->encoding, &batch->images, &n->pass, &n->features, error));
    return linear_head_logits(n->head, run->step_memory, &n->features, &n->scored, error);
}

static status learn(struct network *n, const struct network *other, struct method_run *run, const struct task *task,
                    const struct batch *batch, struct error *error)
{
    struct model *model = run->model;
    float weight = (float)batch->count / (float)batch->total;
    struct tensor dfeatures;
    TRY(linear_head_loss(n->head, &n->scored, &batch->labels, task->settings.smoothing, weight, model->loss, error));
    TRY(model->backend->ops->soft_cross_entropy(
        model->backend,
        &(struct soft_cross_entropy){.logits = matrix_of(&n->scored.logits),
                                     .targets = matrix_of(&other->scored.logits),
                                     .dlogits = matrix_of(&n->scored.dlogits),
                                     .temperature = 1,
                                     .weight = weight,
                                     .loss = model->loss},
        error));
    TRY(linear_head_backward(n->head, run->step_memory, &n->scored, &dfeatures, error));
    return clip_encode_backward(n->clip, &n->encoding, &n->pass, &dfeatures, error);
}

static status loss(struct method_run *run, const struct task *task, const struct batch *batch, struct error *error)
{
    struct model *model = run->model;
    struct network first = {.clip = model->clip, .head = model->head_state},
                   second = {.clip = model->peer, .head = model->peer_head};
    if (batch->count == 0)
        return OK;
    TRY(forward(&first, run, batch, error));
    TRY(forward(&second, run, batch, error));
    TRY(learn(&first, &second, run, task, batch, error));
    return learn(&second, &first, run, task, batch, error);
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    return resumed ? OK : trained_groups_reset(run->model, error);
}

/* --- Answers --- */

static status vote(struct method_run *run, const struct task *task, const float *features, size_t n, uint8_t *votes,
                   struct error *error)
{
    enum answer answer = (enum answer)options_choice(run->options, "answer");
    for (size_t i = 0; i < n; i++) {
        votes[2 * i] = answer != ANSWER_SECOND;
        votes[2 * i + 1] = answer != ANSWER_FIRST;
    }
    return OK;
}

static status evaluation_model(struct method_run *run, size_t model, struct error *error)
{
    swap(run, model == 1);
    return OK;
}

static status evaluation_begin(struct method_run *run, struct error *error)
{
    swap(run, false);
    return OK;
}

/* Probabilities. */
static void soften(float *row, size_t n)
{
    double highest = (double)row[0], sum = 0;
    for (size_t c = 1; c < n; c++)
        highest = (double)row[c] > highest ? (double)row[c] : highest;
    for (size_t c = 0; c < n; c++)
        sum += exp((double)row[c] - highest);
    for (size_t c = 0; c < n; c++)
        row[c] = (float)(exp((double)row[c] - highest) / sum);
}

static status scores(struct method_run *run, const struct task *task, const float *features, size_t n, size_t classes,
                     float *out, struct error *error)
{
    for (size_t i = 0; i < n; i++)
        soften(out + i * classes, classes);
    return OK;
}

/* The second network's steps and tests. */
static void cost(const struct method_run *run, struct method_cost *cost)
{
    const struct clip_dimensions *d = &run->model->clip->dimensions;
    const struct task *task = &run->data->tasks[0];
    const struct cost_experts none = {0};
    size_t batch = task->settings.batch;
    cost->operations = 3.0 * (double)task->settings.iterations * cost_images(d, batch) +
                       cost_images(d, dataset_size(task->dataset, SPLIT_TEST));
    cost->memory = (double)cost_step_bytes(d, batch, 0, 0, &none, run->model->backend->precision);
}

const struct method method_dml = {
    .name = "dml",
    .source = "Deep Mutual Learning, CVPR 2018",
    .formula = "loss = CE(p1) + KL(p2 ‖ p1) + CE(p2) + KL(p1 ‖ p2), p1 and p2 of two networks; their mean answers",
    .options = options,
    .head = "linear",
    .loss_repeats = true,
    .state_size = sizeof(struct state),
    .trains = GROUP_IMAGE_TOWER | GROUP_HEAD,
    .open = open_peer,
    .close = close_peer,
    .begin_task = begin_task,
    .loss = loss,
    .vote = vote,
    .evaluation_begin = evaluation_begin,
    .evaluation_model = evaluation_model,
    .evaluation_end = evaluation_begin,
    .scores = scores,
    .cost = cost};
