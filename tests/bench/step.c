/* Times a training step of the adapters and an evaluation batch, as a share of the machine's own f32 product rate in
 * the same run.
 *
 *     build/tests/step [vit_b_16|mini] [images] [prompts] [experts]
 *
 * Nothing is asserted: the figures are for people. Weights are random; that changes no time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "adapters/adapter.h"
#include "core/rng.h"
#include "harness/estimate.h"
#include "models/clip.h"
#include "models/contrastive.h"
#include "models/cost.h"

enum { TASKS = 11, TOP_K = 2, BOTTLENECK = 64 };

static const struct shape {
    const char *name;
    struct clip_dimensions dimensions;
    size_t images, prompts, experts, positions, repeats;
} shapes[] = {
    {"vit_b_16",
     {.embed = 512,
      .resolution = 224,
      .patch = 16,
      .image_width = 768,
      .image_blocks = 12,
      .context = 77,
      .vocabulary = 49408,
      .text_width = 512,
      .text_blocks = 12},
     16,
     100,
     55,
     14,
     2},
    {"mini",
     {.embed = 128,
      .resolution = 64,
      .patch = 8,
      .image_width = 128,
      .image_blocks = 4,
      .context = 32,
      .vocabulary = 900,
      .text_width = 128,
      .text_blocks = 3},
     64,
     10,
     22,
     10,
     20},
};

struct bench {
    const struct shape *shape;
    size_t images, prompts, experts;
    struct backend *backend;
    struct arena model, step;
    struct clip *clip;
    struct adapters *adapters;
    struct step_state *state;
    float *loss;
    uint8_t *pixels;
    int32_t *tokens, *labels;
};

static struct error error;

static void must(status result)
{
    if (result != OK) {
        fprintf(stderr, "step: %s\n", error.message);
        exit(1);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void open_bench(struct bench *b)
{
    const struct clip_dimensions *n = &b->shape->dimensions;
    struct adapter_settings settings = {.experts = b->experts,
                                        .top_k = TOP_K,
                                        .tasks = TASKS,
                                        .bottleneck = BOTTLENECK,
                                        .scale = 0.1f,
                                        .dropout = 0.1f,
                                        .noise_epsilon = 0.01f};
    must(backend_open(&b->backend, &(struct backend_settings){.name = "cpu"}, &error));
    must(b->backend->ops->arena_create(b->backend, &b->model, 0, "model", &error));
    must(b->backend->ops->arena_create(b->backend, &b->step, 0, "step", &error));
    must(clip_create(&b->clip, b->backend, &b->model, n, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU, &error));
    must(clip_initialize(b->clip, 1, &error));
    must(adapters_create(&b->adapters, b->backend, &b->model, n, &settings, PARAMETERS_TRAINED, &error));
    must(adapters_initialize(b->adapters, 1, &error));
    must(adapters_begin_task(b->adapters, 0, &error));
    b->state = arena_take(&b->model, sizeof *b->state);
    b->loss = arena_take(&b->model, sizeof *b->loss);
    *b->state = (struct step_state){.seed = 1, .learning_rate = 1e-3f};
    b->pixels = malloc(b->images * n->resolution * n->resolution * 3);
    b->tokens = calloc(b->prompts * n->context, sizeof *b->tokens);
    b->labels = calloc(b->images, sizeof *b->labels);
    struct rng rng = rng_make(1, RNG_TEST, 0, 0);
    for (size_t i = 0; i < b->images * n->resolution * n->resolution * 3; i++)
        b->pixels[i] = (uint8_t)rng_below(&rng, i, 256);
    for (size_t c = 0; c < b->prompts; c++)
        for (size_t l = 0; l < b->shape->positions; l++)
            b->tokens[c * n->context + l] =
                l + 1 < b->shape->positions ? (int32_t)rng_below(&rng, c * 100 + l, 800) : (int32_t)n->vocabulary - 1;
    for (size_t i = 0; i < b->images; i++)
        b->labels[i] = (int32_t)(i % b->prompts);
}

static const int32_t *routers(struct bench *b, size_t n)
{
    int32_t *router = arena_take(&b->step, n * sizeof *router);
    memset(router, 0, n * sizeof *router);
    return router;
}

static void encode(struct bench *b, bool training, struct block_hook hooks[TOWERS], struct encoding encodings[TOWERS],
                   struct tower_pass passes[TOWERS], struct texts *texts, struct tensor features[TOWERS], bool text)
{
    size_t r = b->shape->dimensions.resolution;
    struct image_batch batch = {
        .images = {.data = b->pixels, .type = TENSOR_U8, .rank = 4, .shape = {b->images, r, r, 3}}};
    arena_reset(&b->step);
    for (int t = 0; t < TOWERS; t++) {
        hooks[t] = adapters_hook(b->adapters, (enum tower)t);
        encodings[t] = (struct encoding){.arena = &b->step,
                                         .training = training,
                                         .hook = &hooks[t],
                                         .state = b->state,
                                         .router = routers(b, t == TOWER_IMAGE ? b->images : b->prompts)};
    }
    must(clip_encode_images(b->clip, &encodings[0], &batch, &passes[0], &features[0], &error));
    if (!text)
        return;
    must(texts_create(texts, b->clip, &b->step, b->tokens, b->prompts, &error));
    must(clip_encode_texts(b->clip, &encodings[1], texts, &passes[1], &features[1], &error));
}

static void train_step(struct bench *b)
{
    struct block_hook hooks[TOWERS];
    struct encoding encodings[TOWERS];
    struct tower_pass passes[TOWERS];
    struct texts texts;
    struct tensor features[TOWERS], dfeatures[TOWERS];
    struct contrastive c;
    b->state->step++;
    encode(b, true, hooks, encodings, passes, &texts, features, true);
    must(contrastive_logits(b->backend, &b->step, &features[0], &features[1], 100.0f, &c, &error));
    *b->loss = 0;
    must(contrastive_loss(b->backend, &c, b->labels, 0.2f, 1.0f, b->loss, &error));
    must(contrastive_backward(b->backend, &b->step, &c, &dfeatures[0], &dfeatures[1], &error));
    for (int t = 0; t < TOWERS; t++)
        must(clip_encode_backward(b->clip, &encodings[t], &passes[t], &dfeatures[t], &error));
    struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    must(adapters_step(b->adapters, b->state, &rule, &error));
}

static void evaluate(struct bench *b)
{
    struct block_hook hooks[TOWERS];
    struct encoding encodings[TOWERS];
    struct tower_pass passes[TOWERS];
    struct texts texts;
    struct tensor features[TOWERS];
    encode(b, false, hooks, encodings, passes, &texts, features, false);
}

/* The fastest of some repeats: what the machine can do when it is left alone. */
static double fastest(struct bench *b, void (*what)(struct bench *))
{
    double best = 1e30;
    what(b);
    for (size_t i = 0; i < b->shape->repeats; i++) {
        double start = now();
        what(b);
        double seconds = now() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

static double best_rate(struct bench *b)
{
    double best = 0;
    for (int i = 0; i < 8; i++) {
        double rate;
        arena_reset(&b->step);
        must(product_rate(b->backend, &b->step, &rate, &error));
        best = rate > best ? rate : best;
    }
    return best;
}

static void report(struct bench *b)
{
    const struct clip_dimensions *n = &b->shape->dimensions;
    struct rusage usage;
    double rate = best_rate(b);
    double step = fastest(b, train_step),
           step_cost = cost_adapter_step(n, b->images, b->prompts, b->shape->positions, TOP_K, BOTTLENECK);
    double evaluation = fastest(b, evaluate),
           evaluation_cost = cost_images(n, b->images) + cost_image_experts(n, b->images, TOP_K, BOTTLENECK);
    double again = best_rate(b);
    rate = again > rate ? again : rate;
    getrusage(RUSAGE_SELF, &usage);
    size_t values = adapters_values(b->adapters);
    printf("%s, %s, %zu images, %zu prompts of %zu tokens, %zu experts\n", b->shape->name, b->backend->description,
           b->images, b->prompts, b->shape->positions, b->experts);
    printf("  trainable parameters  %zu, %.1f MiB\n", values, (double)values * 4 / (1 << 20));
    printf("  product rate          %.0f GFLOP/s (f32, 1024 x 768 x 3072)\n", rate / 1e9);
    printf("  training step         %.3f s, %.3f TFLOP, %.0f%% of the product rate\n", step, step_cost / 1e12,
           100 * step_cost / step / rate);
    printf("  evaluation            %.1f images/s, %.0f%% of the product rate\n", (double)b->images / evaluation,
           100 * evaluation_cost / evaluation / rate);
    printf("  peak memory           %.2f GB\n", (double)usage.ru_maxrss * 1024 / 1e9);
}

int main(int argc, char **argv)
{
    struct bench b = {.shape = &shapes[0]};
    for (size_t i = 0; argc > 1 && i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].name, argv[1]) == 0)
            b.shape = &shapes[i];
    if (argc > 1 && strcmp(argv[1], b.shape->name) != 0) {
        fprintf(stderr, "usage: step [vit_b_16|mini] [images] [prompts] [experts]\n");
        return 2;
    }
    b.images = argc > 2 ? strtoul(argv[2], NULL, 10) : b.shape->images;
    b.prompts = argc > 3 ? strtoul(argv[3], NULL, 10) : b.shape->prompts;
    b.experts = argc > 4 ? strtoul(argv[4], NULL, 10) : b.shape->experts;
    open_bench(&b);
    report(&b);
    free(b.pixels);
    free(b.tokens);
    free(b.labels);
    adapters_destroy(b.adapters);
    clip_destroy(b.clip);
    b.backend->ops->arena_destroy(b.backend, &b.step);
    b.backend->ops->arena_destroy(b.backend, &b.model);
    backend_close(b.backend);
    return 0;
}
