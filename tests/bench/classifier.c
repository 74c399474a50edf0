/* Times a training step and an evaluation batch of a classifier whose MLPs are averaged experts (EWA) against those of the
 * dense one, in turns, so that what else the machine does meets both.
 *
 *     build/tests/classifier [--backend cpu|cuda] [--precision f32|bf16] [vit_b_16|vit_s_4|mini] [images] [experts]
 *
 * Nothing is asserted: the figures are for people. Weights are random; that changes no time. A step is forward, backward,
 * the check for gradients that are not finite, the update and the averaging, and is recorded where the backend can. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/experts/kind.h"
#include "adapters/merge/policies.h"
#include "adapters/routers/router.h"
#include "core/rng.h"
#include "models/vit.h"
#include "tests/bench/clock.h"
#include "tests/bench/must.h"
#include "tests/bench/repeated.h"

enum { CLASSES = 100 };

static const struct shape {
    const char *name;
    struct vit_settings vit;
    size_t images, device_images, repeats;
} shapes[] = {
    {"vit_b_16",
     {.resolution = 224,
      .patch = 16,
      .width = 768,
      .hidden = 3072,
      .heads = 12,
      .blocks = 12,
      .activation = ACTIVATION_GELU},
     4,
     128,
     3},
    {"vit_s_4",
     {.resolution = 32,
      .patch = 4,
      .width = 384,
      .hidden = 1536,
      .heads = 6,
      .blocks = 12,
      .activation = ACTIVATION_GELU},
     32,
     128,
     6},
    {"mini",
     {.resolution = 32, .patch = 4, .width = 64, .hidden = 256, .heads = 1, .blocks = 4, .activation = ACTIVATION_GELU},
     32,
     128,
     60},
};

struct bench {
    const struct shape *shape;
    size_t images, experts;
    struct backend_settings settings;
    struct backend *backend;
    struct arena memory;
    struct step_state *state; /* device, as all below */
    float *loss;
    int32_t *found;
    struct tensor pixels, labels, routers;
    struct options *averaging;
};

/* One of the two that are compared. */
struct classifier {
    struct bench *bench;
    struct clip *vit;
    struct linear_head *head;
    struct adapters *adapters; /* NULL: dense */
    struct arena step;
    struct repeated repeated;
    uint32_t steps;
    double trained, evaluated; /* seconds, the fastest so far */
};

/* --- What is timed --- */

/* In every second block, one expert for each token (adapters/README.md). */
static void open_experts(struct classifier *c)
{
    const struct bench *b = c->bench;
    const struct block *blocks[TOWERS] = {c->vit->towers[TOWER_IMAGE].blocks, NULL};
    struct adapter_settings settings = {.kind = &expert_ffn,
                                        .router = &router_random_uniform,
                                        .experts = b->experts,
                                        .top_k = 1,
                                        .tasks = 1,
                                        .routing = ROUTING_PER_TOKEN,
                                        .activation = c->vit->activation,
                                        .place = {.towers = ADAPT_IMAGE}};
    const char *every_2 = "every_2";
    must(block_choice_read(&settings.place.blocks, &every_2, 1, &error));
    settings.kind->settle(&settings);
    must(adapters_create(&c->adapters, b->backend, &c->bench->memory, &c->vit->dimensions, &settings,
                         PARAMETERS_TRAINED, &error));
    must(adapters_initialize(c->adapters, blocks, 1, &error));
    must(adapters_begin_task(c->adapters, 0, &error));
    must(clip_replace_mlps(c->vit, TOWER_IMAGE, adapters_hooks(c->adapters, TOWER_IMAGE), &error));
}

static void open_classifier(struct classifier *c, struct bench *b, bool experts)
{
    *c = (struct classifier){.bench = b, .trained = 1e30, .evaluated = 1e30};
    must(b->backend->ops->arena_create(b->backend, &c->step, 0, "step", &error));
    must(vit_create(&c->vit, b->backend, &b->memory, &b->shape->vit, PARAMETERS_TRAINED, &error));
    must(vit_initialize(c->vit, 1, &error));
    must(
        linear_head_create(&c->head, b->backend, &b->memory, b->shape->vit.width, CLASSES, PARAMETERS_TRAINED, &error));
    if (experts)
        open_experts(c);
}

static struct encoding encoding_of(struct classifier *c, bool training)
{
    struct encoding encoding = {.arena = &c->step, .training = training, .state = c->bench->state};
    if (c->adapters != NULL) {
        encoding.hooks = adapters_hooks(c->adapters, TOWER_IMAGE);
        encoding.router = c->bench->routers.data;
    }
    return encoding;
}

static status forward_and_backward(void *context, struct error *failure)
{
    struct classifier *c = context;
    const struct bench *b = c->bench;
    struct encoding encoding = encoding_of(c, true);
    struct tensor images = b->pixels;
    struct tower_pass pass;
    struct linear_pass scores;
    struct tensor features, dfeatures;
    arena_reset(&c->step);
    TRY(b->backend->ops->zero(b->backend, b->loss, sizeof *b->loss, failure));
    TRY(clip_encode_images(c->vit, &encoding, &images, &pass, &features, failure));
    TRY(linear_head_logits(c->head, &c->step, &features, &scores, failure));
    TRY(linear_head_loss(c->head, &scores, &(struct image_labels){.labels = b->labels.data}, 0.1f, 1.0f, b->loss,
                         failure));
    TRY(linear_head_backward(c->head, &c->step, &scores, &dfeatures, failure));
    return clip_encode_backward(c->vit, &encoding, &pass, &dfeatures, failure);
}

static void update_group(const struct bench *b, struct parameters *group)
{
    struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.05};
    must(parameters_find_not_finite(group, b->found, &error));
    must(parameters_step(group, b->state, &rule, &error));
}

static void train(struct classifier *c)
{
    struct bench *b = c->bench;
    const struct backend_ops *ops = b->backend->ops;
    struct step_state state = {.seed = 1, .step = c->steps++, .learning_rate = 1e-4f};
    must(ops->upload(b->backend, b->state, &state, sizeof state, &error));
    must(repeated_run(b->backend, &c->repeated, &error));
    update_group(b, c->vit->parameters);
    update_group(b, c->head->parameters);
    if (c->adapters == NULL)
        return;
    update_group(b, c->adapters->towers[TOWER_IMAGE].parameters);
    must(policy_ewa.after_step(c->adapters,
                               &(struct merge_call){.iteration = 1, .iterations = 1, .options = b->averaging}, &error));
}

static void evaluate(struct classifier *c)
{
    struct encoding encoding = encoding_of(c, false);
    struct tensor images = c->bench->pixels;
    struct tower_pass pass;
    struct tensor features;
    arena_reset(&c->step);
    must(clip_encode_images(c->vit, &encoding, &images, &pass, &features, &error));
}

/* --- Time --- */

static void wait_for_it(const struct bench *b)
{
    must(wait_for_device(b->backend, b->loss, &error));
}

static void time_once(struct classifier *c, void (*what)(struct classifier *), double *fastest)
{
    size_t together = c->bench->backend->asynchronous ? 10 : 1;
    wait_for_it(c->bench);
    double start = clock_seconds();
    for (size_t i = 0; i < together; i++)
        what(c);
    wait_for_it(c->bench);
    double seconds = (clock_seconds() - start) / (double)together;
    *fastest = seconds < *fastest ? seconds : *fastest;
}

static void compare(struct classifier classifiers[2])
{
    for (size_t i = 0; i < 3; i++) /* made, recorded, replayed */
        for (size_t k = 0; k < 2; k++)
            train(&classifiers[k]);
    for (size_t i = 0; i < classifiers[0].bench->shape->repeats; i++)
        for (size_t k = 0; k < 2; k++)
            time_once(&classifiers[k], train, &classifiers[k].trained);
    for (size_t k = 0; k < 2; k++)
        evaluate(&classifiers[k]);
    for (size_t i = 0; i < classifiers[0].bench->shape->repeats; i++)
        for (size_t k = 0; k < 2; k++)
            time_once(&classifiers[k], evaluate, &classifiers[k].evaluated);
}

static void report(const struct bench *b, const struct classifier classifiers[2])
{
    const struct classifier *dense = &classifiers[0], *experts = &classifiers[1];
    printf("%s, %s, %zu images, %zu experts in every second block\n", b->shape->name, b->backend->description,
           b->images, b->experts);
    printf("                   dense      experts    ratio\n");
    printf("  training step    %.5f s  %.5f s  %.3f\n", dense->trained, experts->trained,
           experts->trained / dense->trained);
    printf("  evaluation       %.5f s  %.5f s  %.3f\n", dense->evaluated, experts->evaluated,
           experts->evaluated / dense->evaluated);
}

/* --- Opening --- */

static void take(struct bench *b, struct tensor *tensor, enum tensor_type type, int rank, const size_t *shape)
{
    must(tensor_take(tensor, &b->memory, type, "batch", rank, shape, &error));
    must(b->backend->ops->zero(b->backend, tensor->data, tensor_bytes(tensor), &error));
}

static void open_batch(struct bench *b)
{
    size_t r = b->shape->vit.resolution, count = b->images * r * r * 3, one = 1, state = sizeof *b->state;
    struct rng rng = rng_make(1, RNG_TEST, 0, 0);
    struct tensor memory;
    uint8_t *values = malloc(count);
    if (values == NULL)
        must(error_set(&error, ERROR_MEMORY, "no memory for a batch"));
    for (size_t i = 0; i < count; i++)
        values[i] = (uint8_t)rng_below(&rng, i, 256);
    take(b, &b->pixels, TENSOR_U8, 4, (size_t[]){b->images, r, r, 3});
    must(b->backend->ops->upload(b->backend, b->pixels.data, values, count, &error));
    free(values);
    take(b, &b->labels, TENSOR_I32, 1, &b->images);
    take(b, &b->routers, TENSOR_I32, 1, &b->images);
    take(b, &memory, TENSOR_U8, 1, &state);
    b->state = memory.data;
    take(b, &memory, TENSOR_F32, 1, &one);
    b->loss = memory.data;
    take(b, &memory, TENSOR_I32, 1, &one);
    b->found = memory.data;
}

static bool read_words(struct bench *b, int argc, char **argv)
{
    size_t numbers[2] = {0}, given = 0;
    for (int i = 1; i < argc; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
            if (strcmp(shapes[k].name, argv[i]) == 0) {
                b->shape = &shapes[k];
                known = true;
            }
        if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc) {
            b->settings.name = argv[++i];
        } else if (strcmp(argv[i], "--precision") == 0 && i + 1 < argc) {
            b->settings.precision = strcmp(argv[++i], "bf16") == 0 ? PRECISION_BF16 : PRECISION_F32;
        } else if (!known) {
            if (given == 2 || (numbers[given++] = strtoul(argv[i], NULL, 10)) == 0)
                return false;
        }
    }
    b->images = numbers[0];
    b->experts = numbers[1] > 0 ? numbers[1] : 4;
    return true;
}

int main(int argc, char **argv)
{
    struct bench b = {.shape = &shapes[0], .settings = {.name = "cpu"}};
    struct classifier classifiers[2];
    if (!read_words(&b, argc, argv)) {
        fprintf(stderr, "usage: classifier [--backend cpu|cuda] [--precision f32|bf16] [vit_b_16|vit_s_4|mini] "
                        "[images] [experts]\n");
        return 2;
    }
    must(backend_open(&b.backend, &b.settings, &error));
    if (b.images == 0)
        b.images = b.backend->asynchronous ? b.shape->device_images : b.shape->images;
    must(b.backend->ops->arena_create(b.backend, &b.memory, 0, "model", &error));
    open_batch(&b);
    must(options_create(&b.averaging, policy_ewa.options, &error));
    for (size_t k = 0; k < 2; k++) {
        open_classifier(&classifiers[k], &b, k == 1);
        classifiers[k].repeated = (struct repeated){.body = forward_and_backward, .context = &classifiers[k]};
    }
    compare(classifiers);
    report(&b, classifiers);
    for (size_t k = 0; k < 2; k++) {
        struct classifier *c = &classifiers[k];
        b.backend->ops->recording_destroy(b.backend, &c->repeated.recording);
        adapters_destroy(c->adapters);
        linear_head_destroy(c->head);
        clip_destroy(c->vit);
        b.backend->ops->arena_destroy(b.backend, &c->step);
    }
    options_destroy(b.averaging);
    b.backend->ops->arena_destroy(b.backend, &b.memory);
    backend_close(b.backend);
    return 0;
}
