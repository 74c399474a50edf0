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

#include "adapters/merge/policies.h"
#include "adapters/routers/router.h"
#include "harness/train/image_pass.h"
#include "models/vit.h"
#include "tests/bench/bench.h"

static const struct shape {
    const char *name;
    size_t resolution, patch, width, heads, blocks, images, device_images, repeats;
} shapes[] = {
    {"vit_b_16", 224, 16, 768, 12, 12, 4, 128, 3},
    {"vit_s_4", 32, 4, 384, 6, 12, 32, 128, 6},
    {"mini", 32, 4, 64, 1, 4, 32, 128, 60},
};

enum { SHAPES = sizeof shapes / sizeof *shapes, CLASSES = 100 };

struct comparison {
    const struct shape *shape;
    size_t images, experts;
    struct backend_settings settings;
    struct bench bench;
    struct step_state *state; /* device, as all below */
    float *loss;
    int32_t *found;
    struct tensor pixels;
    int32_t *labels, *routers;
    struct options *averaging;
};

/* One of the two that are compared. */
enum { DENSE, EXPERTS, COMPARED };
struct classifier {
    struct comparison *comparison;
    struct clip *vit;
    struct linear_head *head;
    struct adapters *adapters; /* NULL: dense */
    struct arena step;
    struct repeated repeated;
    uint32_t steps;
};

/* --- What is timed --- */

static struct encoding encoding_of(struct classifier *c, bool training)
{
    struct encoding encoding = {.arena = &c->step, .training = training, .state = c->comparison->state};
    if (c->adapters != NULL) {
        encoding.hooks = adapters_hooks(c->adapters, TOWER_IMAGE);
        encoding.router = c->comparison->routers;
    }
    return encoding;
}

static status forward_and_backward(void *context, struct error *failure)
{
    struct classifier *c = context;
    const struct comparison *b = c->comparison;
    struct encoding encoding = encoding_of(c, true);
    struct tensor images = b->pixels;
    struct tower_pass pass;
    struct linear_pass scores;
    struct tensor features, dfeatures;
    arena_reset(&c->step);
    TRY(b->bench.ops->zero(b->bench.backend, b->loss, sizeof *b->loss, failure));
    TRY(clip_encode_images(c->vit, &encoding, &images, &pass, &features, failure));
    TRY(linear_head_logits(c->head, &c->step, &features, &scores, failure));
    TRY(linear_head_loss(c->head, &scores, &(struct image_labels){.labels = b->labels}, 0.1f, 1.0f, b->loss, failure));
    TRY(linear_head_backward(c->head, &c->step, &scores, &dfeatures, failure));
    return clip_encode_backward(c->vit, &encoding, &pass, &dfeatures, failure);
}

static void update_group(const struct comparison *b, struct parameters *group)
{
    struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.05};
    must(parameters_find_not_finite(group, b->found, &error));
    must(parameters_step(group, b->state, &rule, &error));
}

static void train(void *context)
{
    struct classifier *c = context;
    struct comparison *b = c->comparison;
    struct step_state state = {.seed = 1, .step = c->steps++, .learning_rate = 1e-4f};
    must(b->bench.ops->upload(b->bench.backend, b->state, &state, sizeof state, &error));
    must(repeated_run(&c->repeated, b->images, &error));
    update_group(b, c->vit->parameters);
    update_group(b, c->head->parameters);
    if (c->adapters == NULL)
        return;
    update_group(b, c->adapters->towers[TOWER_IMAGE].parameters);
    must(policy_ewa.after_step(c->adapters,
                               &(struct merge_call){.iteration = 1, .iterations = 1, .options = b->averaging}, &error));
}

static void evaluate(void *context)
{
    struct classifier *c = context;
    struct encoding encoding = encoding_of(c, false);
    struct tensor images = c->comparison->pixels;
    struct tower_pass pass;
    struct tensor features;
    arena_reset(&c->step);
    must(clip_encode_images(c->vit, &encoding, &images, &pass, &features, &error));
}

/* --- Time --- */

/* After some rounds without a clock, the fastest of the others, by turns. */
static void compare(struct classifier classifiers[COMPARED], const char *name, void (*what)(void *), size_t before)
{
    const struct comparison *b = classifiers->comparison;
    double fastest[COMPARED] = {1e30, 1e30};
    for (size_t i = 0; i < before + b->shape->repeats; i++)
        for (size_t k = 0; k < COMPARED; k++) {
            double seconds = seconds_of(&b->bench, what, &classifiers[k], i < before ? 1 : 10);
            fastest[k] = i >= before && seconds < fastest[k] ? seconds : fastest[k];
        }
    printf("  %-16s %.5f s  %.5f s  %.3f\n", name, fastest[DENSE], fastest[EXPERTS], fastest[EXPERTS] / fastest[DENSE]);
}

/* --- Opening --- */

/* In every second block, one expert for each token (adapters/README.md). */
static void open_experts(struct classifier *c)
{
    struct comparison *b = c->comparison;
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
    settings.kind->set_unread(&settings);
    must(adapters_create(&c->adapters, b->bench.backend, &b->bench.arena, &c->vit->dimensions, &settings,
                         PARAMETERS_TRAINED, &error));
    must(adapters_initialize(c->adapters, blocks, 1, &error));
    must(adapters_begin_task(c->adapters, 0, &error));
    must(clip_replace_mlps(c->vit, TOWER_IMAGE, adapters_hooks(c->adapters, TOWER_IMAGE), &error));
}

static void open_classifier(struct classifier *c, struct comparison *b, bool experts)
{
    const struct shape *s = b->shape;
    struct vit_settings vit = {.resolution = s->resolution,
                               .patch = s->patch,
                               .width = s->width,
                               .hidden = 4 * s->width,
                               .heads = s->heads,
                               .blocks = s->blocks,
                               .activation = ACTIVATION_GELU};
    *c = (struct classifier){.comparison = b};
    c->repeated = (struct repeated){
        .backend = b->bench.backend, .name = "classifier", .what = "steps", .body = forward_and_backward, .context = c};
    must(b->bench.ops->arena_create(b->bench.backend, &c->step, 0, "step", &error));
    must(vit_create(&c->vit, b->bench.backend, &b->bench.arena, &vit, PARAMETERS_TRAINED, &error));
    must(vit_initialize(c->vit, 1, &error));
    must(
        linear_head_create(&c->head, b->bench.backend, &b->bench.arena, s->width, CLASSES, PARAMETERS_TRAINED, &error));
    if (experts)
        open_experts(c);
}

static void open_batch(struct comparison *b)
{
    b->pixels = drawn_images(&b->bench, b->images, b->shape->resolution);
    b->labels = memory(&b->bench, b->images * sizeof *b->labels);
    b->routers = memory(&b->bench, b->images * sizeof *b->routers);
    b->state = memory(&b->bench, sizeof *b->state);
    b->loss = memory(&b->bench, sizeof *b->loss);
    b->found = memory(&b->bench, sizeof *b->found);
}

static bool read_words(struct comparison *b, int argc, char **argv)
{
    size_t numbers[2] = {0}, given = 0;
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < SHAPES && strcmp(shapes[k].name, argv[i]) != 0)
            k++;
        if (k < SHAPES)
            b->shape = &shapes[k];
        else if (!read_backend(&b->settings, argc, argv, &i) &&
                 (given == 2 || (numbers[given++] = strtoul(argv[i], NULL, 10)) == 0))
            return false;
    }
    b->images = numbers[0];
    b->experts = numbers[1] > 0 ? numbers[1] : 4;
    return true;
}

int main(int argc, char **argv)
{
    struct comparison b = {.shape = &shapes[0], .settings = {.name = "cpu"}};
    struct classifier classifiers[COMPARED];
    if (!read_words(&b, argc, argv)) {
        fprintf(stderr, "usage: classifier [--backend cpu|cuda] [--precision f32|bf16] [vit_b_16|vit_s_4|mini] "
                        "[images] [experts]\n");
        return 2;
    }
    must(bench_open(&b.bench, &b.settings));
    if (b.images == 0)
        b.images = b.bench.backend->asynchronous ? b.shape->device_images : b.shape->images;
    open_batch(&b);
    must(options_create(&b.averaging, policy_ewa.options, &error));
    for (size_t k = 0; k < COMPARED; k++)
        open_classifier(&classifiers[k], &b, k == EXPERTS);
    printf("%s, %s, %zu images, %zu experts in every second block\n", b.shape->name, b.bench.backend->description,
           b.images, b.experts);
    printf("                   dense      experts    ratio\n");
    compare(classifiers, "training step", train, 3); /* made, recorded, replayed */
    compare(classifiers, "evaluation", evaluate, 1);
    for (size_t k = 0; k < COMPARED; k++) {
        struct classifier *c = &classifiers[k];
        repeated_close(&c->repeated);
        adapters_destroy(c->adapters);
        linear_head_destroy(c->head);
        clip_destroy(c->vit);
        b.bench.ops->arena_destroy(b.bench.backend, &c->step);
    }
    options_destroy(b.averaging);
    bench_close(&b.bench);
    return 0;
}
