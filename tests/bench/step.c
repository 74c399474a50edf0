/* Times a training step of the adapters and an evaluation batch, as a share of the backend's own product rate.
 *
 *     build/tests/step [--backend cpu|cuda] [--precision f32|bf16|both] [--profile] [--budget] [vit_b_16|mini]
 *         [images] [prompts] [experts]
 *
 * The product rate is that of a weight that is packed already. A machine that others use, too, gives another rate every
 * second, so everything is timed in rounds, of both precisions by turns, and each share and each "times as fast" is of
 * figures of one round; what is printed is the middle one of the rounds, and how far they lie apart. Nothing is
 * asserted: the figures are for people. Weights are random; that changes no time. Images lie on the device already: what
 * feeding costs is seen in a run. A step is recorded where the backend can, as in training. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "adapters/merge/policies.h"
#include "core/alloc.h"
#include "core/rng.h"
#include "harness/train/image_pass.h"
#include "models/class_head.h"
#include "models/clip.h"
#include "models/clip/cost.h"
#include "tests/adapters/adapters.h"
#include "tests/bench/bench.h"
#include "tests/bench/budget.h"
#include "tests/bench/models.h"
#include "tests/models/initialize.h"

enum { TASKS = 11, TOP_K = 2, BOTTLENECK = 64, MERGE_EVERY = 100 /* Park */ };

static const struct shape {
    const char *name;
    struct clip_dimensions dimensions;
    size_t images, prompts, experts, positions, rounds; /* at most MOST_FIGURES */
} shapes[] = {
    {"vit_b_16", VIT_B_16, 16, 100, 55, 14, 3},
    {"mini", SMALL_CLIP, 64, 10, 22, 10, 20},
};

enum { SHAPES = sizeof shapes / sizeof *shapes, DEVICE_IMAGES = 64, DEVICE_EVALUATION = 256, DEVICE_TOGETHER = 10 };

enum figure { RATE, STEP, UPDATE, MERGE, EVALUATION, FIGURES };

struct trial {
    const struct shape *shape;
    size_t numbers[3]; /* images, prompts, experts; 0: the shape's */
    bool both, profile, budget;
    size_t images, evaluated, prompts, experts;
    struct backend_settings settings;
    struct bench bench;
    size_t taken;                /* memory of the device */
    struct arena arenas[TOWERS]; /* of a tower's step */
    struct clip *clip;
    struct adapters *adapters;
    struct step_state *state; /* device, as all below */
    float *loss;
    int32_t *found; /* that a gradient is not finite */
    struct tensor pixels;
    int32_t *labels, *routers;
    struct texts texts;
    struct gemm product;
    uint32_t steps;
    struct repeated repeated;
    double rounds[FIGURES]
                 [MOST_FIGURES]; /* RATE: of products, FLOP a second before and after, the mean; others: seconds */
};

/* --- What is timed --- */

static void open_model(struct trial *b)
{
    const struct clip_dimensions *n = &b->shape->dimensions;
    struct adapter_settings settings = {.experts = b->experts,
                                        .top_k = TOP_K,
                                        .tasks = TASKS,
                                        .bottleneck = BOTTLENECK,
                                        .scale = 0.1f,
                                        .dropout = 0.1f,
                                        .noise_epsilon = 0.01f};
    for (int t = 0; t < TOWERS; t++)
        must(b->bench.ops->arena_create(b->bench.backend, &b->arenas[t], 0, "step", &error));
    must(clip_create(&b->clip, b->bench.backend, &b->bench.arena, n, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU, &error));
    must(clip_initialize(b->clip, 1, &error));
    must(adapters_create(&b->adapters, b->bench.backend, &b->bench.arena, n, &settings, PARAMETERS_TRAINED, &error));
    must(adapters_initialize(b->adapters, NULL, 1, &error));
    must(adapters_begin_task(b->adapters, 0, &error));
}

static void open_batch(struct trial *b)
{
    const struct clip_dimensions *n = &b->shape->dimensions;
    size_t most = b->images > b->evaluated ? b->images : b->evaluated, samples = most > b->prompts ? most : b->prompts,
           last = b->shape->positions - 1;
    struct rng rng = rng_make(1, RNG_TEST, 0, 0);
    int32_t *tokens = xcalloc(b->prompts * n->context, sizeof *tokens);
    for (size_t c = 0; c < b->prompts; c++)
        for (size_t l = 0; l <= last; l++)
            tokens[c * n->context + l] =
                l < last ? (int32_t)rng_below(&rng, c * 100 + l, 800) : (int32_t)n->vocabulary - 1;
    b->pixels = drawn_images(&b->bench, most, n->resolution);
    b->labels = integers(&b->bench, b->images, 1, b->prompts);
    must(texts_create(&b->texts, b->clip, &b->bench.arena, tokens, b->prompts, &error));
    b->routers = memory(&b->bench, samples * sizeof *b->routers);
    b->state = memory(&b->bench, sizeof *b->state);
    b->loss = memory(&b->bench, sizeof *b->loss);
    b->found = memory(&b->bench, sizeof *b->found);
    free(tokens);
}

/* A tower's share of a step, or the image tower of an evaluation. */
struct half {
    struct trial *trial;
    enum tower tower;
    struct tensor images; /* of the image tower */
    struct encoding encoding;
    struct tower_pass pass;
    struct tensor features, dfeatures;
};

static struct half half_of(struct trial *b, bool training, enum tower tower)
{
    struct half half = {.trial = b,
                        .tower = tower,
                        .images = b->pixels,
                        .encoding = {.arena = &b->arenas[tower],
                                     .training = training,
                                     .hooks = adapters_hooks(b->adapters, tower),
                                     .state = b->state,
                                     .router = b->routers}};
    half.images.shape[0] = training ? b->images : b->evaluated;
    arena_reset(&b->arenas[tower]);
    return half;
}

static const char *const tower_parts[TOWERS] = {"image tower", "text tower"};

static status forward(void *context, struct error *failure)
{
    struct half *h = context;
    struct clip *clip = h->trial->clip;
    budget_part(tower_parts[h->tower]);
    return h->tower == TOWER_IMAGE
               ? clip_encode_images(clip, &h->encoding, &h->images, &h->pass, &h->features, failure)
               : clip_encode_texts(clip, &h->encoding, &h->trial->texts, &h->pass, &h->features, failure);
}

static status backward(void *context, struct error *failure)
{
    struct half *h = context;
    budget_part(tower_parts[h->tower]);
    return clip_encode_backward(h->trial->clip, &h->encoding, &h->pass, &h->dfeatures, failure);
}

/* As the trainer does: the towers are branches. */
static status forward_and_backward(void *context, struct error *failure)
{
    struct trial *b = context;
    struct half image = half_of(b, true, TOWER_IMAGE), text = half_of(b, true, TOWER_TEXT);
    struct branches there = {{{forward, &image}, {forward, &text}}}, back = {{{backward, &image}, {backward, &text}}};
    struct class_head c;
    TRY(b->bench.ops->branches(b->bench.backend, &there, failure));
    budget_part("head and loss");
    TRY(b->bench.backend->ops->zero(b->bench.backend, b->loss, sizeof *b->loss, failure));
    TRY(class_head_logits(b->bench.backend, image.encoding.arena, &image.features, &text.features, 100.0f, &c,
                          failure));
    TRY(class_head_loss(b->bench.backend, &c, &(struct image_labels){.labels = b->labels}, 0.2f, 1.0f, b->loss,
                        failure));
    TRY(class_head_backward(b->bench.backend, image.encoding.arena, &c, &image.dfeatures, &text.dfeatures, failure));
    return b->bench.ops->branches(b->bench.backend, &back, failure);
}

/* As the trainer does: no step with gradients that are not finite. */
static void update(struct trial *b)
{
    struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    budget_part("update");
    for (int t = 0; t < TOWERS; t++)
        must(parameters_find_not_finite(b->adapters->towers[t].parameters, b->found, &error));
    must(adapters_step(b->adapters, b->state, &rule, &error));
}

static void compute_gradients(struct trial *b)
{
    struct step_state state = {.seed = 1, .step = b->steps++, .learning_rate = 1e-3f};
    must(b->bench.ops->upload(b->bench.backend, b->state, &state, sizeof state, &error));
    must(repeated_run(&b->repeated, b->images, &error));
}

static void train_step(void *context)
{
    struct trial *b = context;
    compute_gradients(b);
    update(b);
}

static void evaluate(void *context)
{
    struct half image = half_of(context, false, TOWER_IMAGE);
    must(forward(&image, &error));
}

/* --- Time --- */

/* Of an update after gradients were computed, as in a step: by itself it would find in the caches what a step has to
 * fetch. */
static double update_in_step(struct trial *b)
{
    compute_gradients(b);
    wait_for_device(&b->bench);
    double start = clock_seconds();
    update(b);
    wait_for_device(&b->bench);
    return clock_seconds() - start;
}

/* The two most used experts of every block of both towers into the least used one. */
static void merge(void *context)
{
    struct trial *b = context;
    struct merge_plan plan = {.policy = &policy_most_used};
    must(adapters_merge(b->adapters, &plan, &(struct merge_call){.moment = MERGE_AFTER_STEP}, NULL, &error));
}

/* Rows of a batch; a CPU is asked for fewer. */
static size_t product_rows(const struct trial *b)
{
    return b->bench.backend->asynchronous ? 12608 : 1024;
}

static void multiply(void *context)
{
    struct trial *b = context;
    must(b->bench.ops->gemm(b->bench.backend, &b->product, &error));
}

/* The best of some. */
static double product_rate(struct trial *b)
{
    enum { TIMES = 10, TOGETHER = 50 };
    double best = 1e30;
    for (int i = 0; i < TIMES; i++) {
        double seconds = seconds_of(&b->bench, multiply, b, TOGETHER);
        best = seconds < best ? seconds : best;
    }
    return reference_operations(product_rows(b)) / best;
}

/* So that no round reaches memory for the first time; on a device a step is made, recorded and replayed. */
static void warm_up(struct trial *b)
{
    for (int i = 0; i < (b->bench.backend->asynchronous ? 3 : 1); i++) {
        train_step(b);
        evaluate(b);
    }
}

static void time_round(struct trial *b, size_t round)
{
    double before = product_rate(b);
    b->rounds[STEP][round] = seconds_of(&b->bench, train_step, b, DEVICE_TOGETHER);
    b->rounds[EVALUATION][round] = seconds_of(&b->bench, evaluate, b, DEVICE_TOGETHER);
    b->rounds[RATE][round] = (before + product_rate(b)) / 2;
    b->rounds[UPDATE][round] = update_in_step(b);
    b->rounds[MERGE][round] = seconds_of(&b->bench, merge, b, 1);
}

/* --- Figures --- */

static void print_peak_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("peak memory of the process: %.2f GB\n", (double)usage.ru_maxrss * 1024 / 1e9);
}

static void profile_of(struct trial *b, const char *name, void (*what)(void *))
{
    printf(" %s, by operation:\n", name);
    timed_begin(b->bench.backend);
    for (size_t i = 0; i < b->shape->rounds; i++)
        what(b);
    timed_print(b->bench.backend, b->shape->rounds);
}

static void print_times(const struct trial *b, const char *name, enum figure figure, double work, const char *how)
{
    double shares[MOST_FIGURES];
    for (size_t i = 0; i < b->shape->rounds; i++)
        shares[i] = 100 * work / b->rounds[figure][i] / b->rounds[RATE][i];
    struct figures seconds = figures_of(b->rounds[figure], b->shape->rounds),
                   share = figures_of(shares, b->shape->rounds);
    printf("  %-21s %.4f s (%.4f to %.4f), %.3f TFLOP, %.0f%% of the product rate (%.0f to %.0f%%)%s\n", name,
           seconds.middle, seconds.lowest, seconds.highest, work / 1e12, share.middle, share.lowest, share.highest,
           how);
}

static void report(const struct trial *b)
{
    const struct clip_dimensions *n = &b->shape->dimensions;
    const struct cost_experts experts = adapters_cost(n, &b->adapters->settings);
    struct figures rate = figures_of(b->rounds[RATE], b->shape->rounds),
                   stepping = figures_of(b->rounds[STEP], b->shape->rounds),
                   updating = figures_of(b->rounds[UPDATE], b->shape->rounds),
                   merging = figures_of(b->rounds[MERGE], b->shape->rounds),
                   evaluation = figures_of(b->rounds[EVALUATION], b->shape->rounds);
    double images = (double)b->evaluated;
    size_t values = adapters_values(b->adapters);
    printf("%s, %s, %zu images, %zu prompts of %zu tokens, %zu experts, %zu rounds\n", b->shape->name,
           b->bench.backend->description, b->images, b->prompts, b->shape->positions, b->experts, b->shape->rounds);
    printf("  trainable parameters  %zu, %.1f MiB\n", values, (double)values * 4 / (1 << 20));
    printf("  product rate          %.0f GFLOP/s (%.0f to %.0f; %s, %zu x %d x %d)\n", rate.middle / 1e9,
           rate.lowest / 1e9, rate.highest / 1e9, precision_name(b->bench.backend->precision), product_rows(b),
           PRODUCT_K, PRODUCT_N);
    print_times(b, "training step", STEP, cost_adapter_step(n, b->images, b->prompts, b->shape->positions, &experts),
                b->repeated.recording.owner != NULL ? ", recorded" : "");
    printf("  of which the update   %.4f s, of what a step used\n", updating.middle);
    printf("  a merge of all blocks %.4f s, every %d steps %.3f%% of a step\n", merging.middle, MERGE_EVERY,
           100 * merging.middle / MERGE_EVERY / stepping.middle);
    print_times(b, "evaluation batch", EVALUATION,
                cost_images(n, b->evaluated) + cost_image_experts(n, b->evaluated, &experts), "");
    printf("  images evaluated      %.1f a second (%.1f to %.1f), in batches of %zu\n", images / evaluation.middle,
           images / evaluation.highest, images / evaluation.lowest, b->evaluated);
    if (b->bench.backend->asynchronous)
        printf("  peak device memory    %.2f GB\n", (double)b->taken / 1e9);
}

/* Of a figure of each round, in f32 and in bf16. */
static void print_ratio(const struct trial trials[2], const char *what, enum figure figure)
{
    double ratios[MOST_FIGURES];
    for (size_t i = 0; i < trials->shape->rounds; i++)
        ratios[i] = trials[0].rounds[figure][i] / trials[1].rounds[figure][i];
    struct figures times = figures_of(ratios, trials->shape->rounds);
    printf("bf16 beside f32: speed of %s %.2f times (%.2f to %.2f)\n", what, times.middle, times.lowest, times.highest);
}

/* --- Command line --- */

static bool read_words(struct trial *b, int argc, char **argv)
{
    size_t given = 0;
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < SHAPES && strcmp(shapes[k].name, argv[i]) != 0)
            k++;
        if (k < SHAPES) {
            b->shape = &shapes[k];
        } else if (read_backend(&b->settings, argc, argv, &i)) {
            b->both = b->both || strcmp(argv[i], "both") == 0;
        } else if (strcmp(argv[i], "--profile") == 0) {
            b->profile = true;
        } else if (strcmp(argv[i], "--budget") == 0) {
            b->budget = true;
        } else {
            char *end;
            size_t number = strtoul(argv[i], &end, 10);
            if (*end != 0 || number == 0 || given == 3)
                return false;
            b->numbers[given++] = number;
        }
    }
    return true;
}

static void close_trial(struct trial *b)
{
    repeated_close(&b->repeated);
    adapters_destroy(b->adapters);
    clip_destroy(b->clip);
    for (int t = 0; t < TOWERS; t++)
        b->bench.ops->arena_destroy(b->bench.backend, &b->arenas[t]);
    bench_close(&b->bench);
}

static void open_trial(struct trial *b)
{
    size_t left = b->bench.ops->memory_left(b->bench.backend);
    bool device = b->bench.backend->asynchronous;
    if (b->profile && device) {
        fprintf(stderr,
                "step: --profile looks at the clock around each operation, which a device only queues; use the CPU, "
                "or ncu\n");
        exit(2);
    }
    b->images = b->numbers[0] > 0 ? b->numbers[0] : device ? DEVICE_IMAGES : b->shape->images;
    b->evaluated = device ? DEVICE_EVALUATION : b->images;
    b->prompts = b->numbers[1] > 0 ? b->numbers[1] : b->shape->prompts;
    b->experts = b->numbers[2] > 0 ? b->numbers[2] : b->shape->experts;
    b->repeated = (struct repeated){
        .backend = b->bench.backend, .name = "step", .what = "steps", .body = forward_and_backward, .context = b};
    open_model(b);
    open_batch(b);
    if (b->budget)
        return;
    warm_up(b);
    b->taken = left - b->bench.ops->memory_left(b->bench.backend);
    b->product = reference_product(&b->bench, product_rows(b));
}

/* The first step, which is queued and makes room, then one whose operations are counted. On an emulated device nothing
 * runs, and closing would wait for it. */
static void print_budget(struct trial *b)
{
    size_t whole;
    open_trial(b);
    must(forward_and_backward(b, &error));
    must(budget_nodes(b->bench.backend, forward_and_backward, b, &whole, &error));
    budget_begin(b->bench.backend, b->bench.byte);
    must(forward_and_backward(b, &error));
    if (budget_counted() != whole) {
        fprintf(stderr, "step: the operations have %zu nodes, a graph of all of them has %zu\n", budget_counted(),
                whole);
        exit(1);
    }
    update(b);
    printf("%s, %s, %s: %zu images, %zu prompts, %zu experts\n\n", b->shape->name, b->bench.backend->description,
           precision_name(b->bench.backend->precision), b->images, b->prompts, b->experts);
    budget_print(b->bench.backend);
    fflush(stdout);
    _exit(0);
}

static void run(struct trial *trials, size_t count)
{
    for (size_t k = 0; k < count; k++)
        open_trial(&trials[k]);
    for (size_t i = 0; i < trials->shape->rounds; i++)
        for (size_t k = 0; k < count; k++)
            time_round(&trials[k], i);
    for (size_t k = 0; k < count; k++)
        report(&trials[k]);
    if (count == 2) {
        print_ratio(trials, "a step", STEP);
        print_ratio(trials, "evaluation", EVALUATION);
    }
    print_peak_memory();
    for (size_t k = 0; k < count; k++) {
        if (trials[k].profile) {
            profile_of(&trials[k], "training step", train_step);
            profile_of(&trials[k], "evaluation", evaluate);
        }
        close_trial(&trials[k]);
    }
}

int main(int argc, char **argv)
{
    static struct trial trials[2] = {{.shape = &shapes[0], .settings = {.name = "cpu"}}};
    if (!read_words(&trials[0], argc, argv)) {
        fprintf(stderr, "usage: step [--backend cpu|cuda] [--precision f32|bf16|both] [--profile] [--budget] "
                        "[vit_b_16|mini] [images] [prompts] [experts]\n");
        return 2;
    }
    must(bench_open(&trials[0].bench, &trials[0].settings));
    if (trials[0].budget)
        print_budget(&trials[0]);
    status second = OK;
    if (trials[0].both) {
        trials[1] = trials[0];
        trials[1].settings.precision = PRECISION_BF16;
        second = bench_open(&trials[1].bench, &trials[1].settings);
    }
    if (second != OK && second != ERROR_DEVICE)
        must(second);
    run(trials, trials[0].both && second == OK ? 2 : 1);
    must(second);
    return 0;
}
