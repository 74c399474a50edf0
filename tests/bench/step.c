/* Times a training step of the adapters and an evaluation batch, as a share of the backend's own product rate.
 *
 *     build/tests/step [--backend cpu|cuda] [--precision f32|bf16|both] [--profile] [--skew] [--budget] [vit_b_16|mini]
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
#include "core/rng.h"
#include "models/class_head.h"
#include "models/clip.h"
#include "models/clip/cost.h"
#include "tests/adapters/adapters.h"
#include "tests/bench/budget.h"
#include "tests/bench/clock.h"
#include "tests/bench/models.h"
#include "tests/bench/must.h"
#include "tests/bench/repeated.h"
#include "tests/bench/skew.h"
#include "tests/bench/timed.h"
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

enum { DEVICE_IMAGES = 64, DEVICE_EVALUATION = 256, DEVICE_TOGETHER = 10 };

enum figure { RATE, STEP, UPDATE, MERGE, EVALUATION, FIGURES };

struct bench {
    const struct shape *shape;
    size_t numbers[3];                        /* images, prompts, experts; 0: the shape's */
    bool both, profile, budget, skew, skewed; /* skew: a second bench, whose routers are skewed */
    size_t images, evaluated, prompts, experts;
    struct backend_settings settings;
    struct backend *backend;
    size_t taken;                       /* memory of the device */
    struct arena model, arenas[TOWERS]; /* of a tower's step */
    struct clip *clip;
    struct adapters *adapters;
    struct step_state *state; /* device, as all below */
    float *loss;
    int32_t *found; /* that a gradient is not finite */
    struct tensor pixels, labels, routers;
    struct tensor x, w, y; /* of the product */
    struct texts texts;
    uint32_t steps;
    double shares[TOWERS]; /* of the two most used experts of a block */
    struct repeated repeated;
    double rounds[FIGURES]
                 [MOST_FIGURES]; /* RATE: of products, FLOP a second before and after, the mean; others: seconds */
};

/* --- What is timed --- */

static void open_model(struct bench *b)
{
    const struct clip_dimensions *n = &b->shape->dimensions;
    struct adapter_settings settings = {.experts = b->experts,
                                        .top_k = TOP_K,
                                        .tasks = TASKS,
                                        .bottleneck = BOTTLENECK,
                                        .scale = 0.1f,
                                        .dropout = 0.1f,
                                        .noise_epsilon = 0.01f};
    must(b->backend->ops->arena_create(b->backend, &b->model, 0, "model", &error));
    for (int t = 0; t < TOWERS; t++)
        must(b->backend->ops->arena_create(b->backend, &b->arenas[t], 0, "step", &error));
    must(clip_create(&b->clip, b->backend, &b->model, n, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU, &error));
    must(clip_initialize(b->clip, 1, &error));
    must(adapters_create(&b->adapters, b->backend, &b->model, n, &settings, PARAMETERS_TRAINED, &error));
    must(adapters_initialize(b->adapters, NULL, 1, &error));
    must(adapters_begin_task(b->adapters, 0, &error));
}

/* Host memory of count bytes, gone when the device has it. */
static void upload(struct bench *b, struct tensor *tensor, enum tensor_type type, int rank, const size_t *shape,
                   void *host)
{
    if (host == NULL)
        must(error_set(&error, ERROR_MEMORY, "no memory for a batch"));
    must(tensor_take(tensor, &b->model, type, "batch", rank, shape, &error));
    must(b->backend->ops->upload(b->backend, tensor->data, host, tensor_bytes(tensor), &error));
    free(host);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void open_batch(struct bench *b)
{
    const struct clip_dimensions *n = &b->shape->dimensions;
    size_t most = larger(b->images, b->evaluated), pixels = most * n->resolution * n->resolution * 3,
           samples = larger(most, b->prompts), one = 1, state = sizeof *b->state;
    struct rng rng = rng_make(1, RNG_TEST, 0, 0);
    uint8_t *values = malloc(pixels);
    int32_t *labels = calloc(b->images, sizeof *labels), *tokens = calloc(b->prompts * n->context, sizeof *tokens);
    struct tensor memory;
    for (size_t i = 0; values != NULL && i < pixels; i++)
        values[i] = (uint8_t)rng_below(&rng, i, 256);
    for (size_t i = 0; labels != NULL && i < b->images; i++)
        labels[i] = (int32_t)(i % b->prompts);
    for (size_t c = 0; tokens != NULL && c < b->prompts; c++)
        for (size_t l = 0; l < b->shape->positions; l++)
            tokens[c * n->context + l] =
                l + 1 < b->shape->positions ? (int32_t)rng_below(&rng, c * 100 + l, 800) : (int32_t)n->vocabulary - 1;
    upload(b, &b->pixels, TENSOR_U8, 4, (size_t[]){most, n->resolution, n->resolution, 3}, values);
    upload(b, &b->labels, TENSOR_I32, 1, &b->images, labels);
    must(texts_create(&b->texts, b->clip, &b->model, tokens, b->prompts, &error));
    free(tokens);
    must(tensor_take(&b->routers, &b->model, TENSOR_I32, "routers", 1, &samples, &error));
    must(b->backend->ops->zero(b->backend, b->routers.data, tensor_bytes(&b->routers), &error));
    must(tensor_take(&memory, &b->model, TENSOR_U8, "state", 1, &state, &error));
    b->state = memory.data;
    must(tensor_take(&memory, &b->model, TENSOR_F32, "loss", 1, &one, &error));
    b->loss = memory.data;
    must(tensor_take(&memory, &b->model, TENSOR_I32, "found", 1, &one, &error));
    b->found = memory.data;
}

static struct encoding encoding_of(struct bench *b, bool training, enum tower tower)
{
    return (struct encoding){.arena = &b->arenas[tower],
                             .training = training,
                             .hooks = adapters_hooks(b->adapters, tower),
                             .state = b->state,
                             .router = b->routers.data};
}

static struct tensor images_of(const struct bench *b, size_t count)
{
    struct tensor batch = b->pixels;
    batch.shape[0] = count;
    return batch;
}

/* A tower's share of a step. */
struct half {
    struct bench *bench;
    struct encoding encoding;
    struct tower_pass pass;
    struct tensor features, dfeatures;
};

static status images_forward(void *context, struct error *failure)
{
    struct half *h = context;
    struct tensor images = images_of(h->bench, h->bench->images);
    budget_part("image tower");
    return clip_encode_images(h->bench->clip, &h->encoding, &images, &h->pass, &h->features, failure);
}

static status texts_forward(void *context, struct error *failure)
{
    struct half *h = context;
    budget_part("text tower");
    return clip_encode_texts(h->bench->clip, &h->encoding, &h->bench->texts, &h->pass, &h->features, failure);
}

static status backward(void *context, struct error *failure)
{
    struct half *h = context;
    budget_part(h->pass.tower == TOWER_IMAGE ? "image tower" : "text tower");
    return clip_encode_backward(h->bench->clip, &h->encoding, &h->pass, &h->dfeatures, failure);
}

/* As the trainer does: the towers are branches. */
static status forward_and_backward(void *context, struct error *failure)
{
    struct bench *b = context;
    struct half image = {.bench = b, .encoding = encoding_of(b, true, TOWER_IMAGE)},
                text = {.bench = b, .encoding = encoding_of(b, true, TOWER_TEXT)};
    struct branches there = {{{images_forward, &image}, {texts_forward, &text}}},
                    back = {{{backward, &image}, {backward, &text}}};
    struct class_head c;
    arena_reset(image.encoding.arena);
    arena_reset(text.encoding.arena);
    TRY(b->backend->ops->branches(b->backend, &there, failure));
    budget_part("head and loss");
    TRY(b->backend->ops->zero(b->backend, b->loss, sizeof *b->loss, failure));
    TRY(class_head_logits(b->backend, image.encoding.arena, &image.features, &text.features, 100.0f, &c, failure));
    TRY(class_head_loss(b->backend, &c, &(struct image_labels){.labels = b->labels.data}, 0.2f, 1.0f, b->loss,
                        failure));
    TRY(class_head_backward(b->backend, image.encoding.arena, &c, &image.dfeatures, &text.dfeatures, failure));
    return b->backend->ops->branches(b->backend, &back, failure);
}

/* As the trainer does: no step with gradients that are not finite. */
static void update(struct bench *b)
{
    struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    budget_part("update");
    for (int t = 0; t < TOWERS; t++)
        must(parameters_find_not_finite(b->adapters->towers[t].parameters, b->found, &error));
    must(adapters_step(b->adapters, b->state, &rule, &error));
}

static void compute_gradients(struct bench *b)
{
    const struct backend_ops *ops = b->backend->ops;
    struct step_state state = {.seed = 1, .step = b->steps++, .learning_rate = 1e-3f};
    must(ops->upload(b->backend, b->state, &state, sizeof state, &error));
    must(repeated_run(b->backend, &b->repeated, &error));
}

static void train_step(struct bench *b)
{
    compute_gradients(b);
    update(b);
}

static void evaluate(struct bench *b)
{
    struct encoding encoding = encoding_of(b, false, TOWER_IMAGE);
    struct tensor images = images_of(b, b->evaluated);
    struct tower_pass pass;
    struct tensor features;
    arena_reset(&b->arenas[TOWER_IMAGE]);
    must(clip_encode_images(b->clip, &encoding, &images, &pass, &features, &error));
}

/* --- Time --- */

static void wait_for_it(struct bench *b)
{
    must(wait_for_device(b->backend, b->loss, &error));
}

/* Of one; where the host does not wait for what it asks for, the mean of several together. */
static double seconds_of(struct bench *b, void (*what)(struct bench *), size_t together)
{
    together = b->backend->asynchronous ? together : 1;
    wait_for_it(b);
    double start = clock_seconds();
    for (size_t i = 0; i < together; i++)
        what(b);
    wait_for_it(b);
    return (clock_seconds() - start) / (double)together;
}

/* Of an update after gradients were computed, as in a step: by itself it would find in the caches what a step has to
 * fetch. */
static double update_in_step(struct bench *b)
{
    compute_gradients(b);
    wait_for_it(b);
    double start = clock_seconds();
    update(b);
    wait_for_it(b);
    return clock_seconds() - start;
}

/* The two most used experts of every block of both towers into the least used one. */
static void merge(struct bench *b)
{
    struct merge_plan plan = {.policy = &policy_most_used};
    must(adapters_merge(b->adapters, &plan, &(struct merge_call){.moment = MERGE_AFTER_STEP}, NULL, &error));
}

enum { PRODUCT_N = 3072, PRODUCT_K = 768 };

/* Rows of a batch; a CPU is asked for fewer. */
static size_t product_rows(const struct bench *b)
{
    return b->backend->asynchronous ? 12608 : 1024;
}

/* Between −½ and ½, in the precision of the run. Products of zeros may be faster. */
static void take_operand(struct bench *b, struct tensor *tensor, size_t rows, size_t columns)
{
    bool bf16 = b->backend->precision == PRECISION_BF16;
    struct rng rng = rng_make(1, RNG_TEST, 1, 0);
    size_t values = rows * columns;
    float *host = malloc(values * sizeof *host);
    uint16_t *upper = (uint16_t *)host;
    for (size_t i = 0; host != NULL && i < values; i++) {
        float x = rng_uniform(&rng, i) - 0.5f;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (bf16)
            upper[i] = (uint16_t)(bits >> 16);
        else
            host[i] = x;
    }
    upload(b, tensor, bf16 ? TENSOR_BF16 : TENSOR_F32, 2, (size_t[]){rows, columns}, host);
}

static void open_product(struct bench *b)
{
    size_t rows = product_rows(b);
    take_operand(b, &b->x, rows, PRODUCT_K);
    take_operand(b, &b->w, PRODUCT_N, PRODUCT_K);
    must(tensor_take(&b->y, &b->model, b->x.type, "y", 2, (size_t[]){rows, PRODUCT_N}, &error));
}

static void multiply(struct bench *b)
{
    struct gemm gemm = {
        .a = matrix_of(&b->x), .b = matrix_of(&b->w), .transpose_b = true, .frozen_b = true, .out = matrix_of(&b->y)};
    must(b->backend->ops->gemm(b->backend, &gemm, &error));
}

/* The best of some. */
static double product_rate(struct bench *b)
{
    enum { TIMES = 10, TOGETHER = 50 };
    double best = 1e30;
    for (int i = 0; i < TIMES; i++) {
        double seconds = seconds_of(b, multiply, TOGETHER);
        best = seconds < best ? seconds : best;
    }
    return 2.0 * (double)product_rows(b) * PRODUCT_N * PRODUCT_K / best;
}

/* So that no round reaches memory for the first time; on a device a step is made, recorded and replayed. */
static void warm_up(struct bench *b)
{
    for (int i = 0; i < (b->backend->asynchronous ? 3 : 1); i++) {
        train_step(b);
        evaluate(b);
    }
}

/* Shares of a step's choices that the two most used experts have, after all rounds: an update moves routers, too. */
static void measure_shares(struct bench *b)
{
    must(adapters_begin_task(b->adapters, 0, &error));
    train_step(b);
    for (int t = 0; t < TOWERS; t++)
        must(skew_share(b->adapters, (enum tower)t, &b->shares[t], &error));
}

static void time_round(struct bench *b, size_t round)
{
    double before = product_rate(b);
    b->rounds[STEP][round] = seconds_of(b, train_step, DEVICE_TOGETHER);
    b->rounds[EVALUATION][round] = seconds_of(b, evaluate, DEVICE_TOGETHER);
    b->rounds[RATE][round] = (before + product_rate(b)) / 2;
    b->rounds[UPDATE][round] = update_in_step(b);
    b->rounds[MERGE][round] = seconds_of(b, merge, 1);
}

/* --- Figures --- */

static void print_peak_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("peak memory of the process: %.2f GB\n", (double)usage.ru_maxrss * 1024 / 1e9);
}

static void profile_of(struct bench *b, const char *name, void (*what)(struct bench *))
{
    printf(" %s, by operation:\n", name);
    timed_begin(b->backend);
    for (size_t i = 0; i < b->shape->rounds; i++)
        what(b);
    timed_print(b->backend, b->shape->rounds);
}

static void profile(struct bench *b)
{
    profile_of(b, "training step", train_step);
    profile_of(b, "evaluation", evaluate);
}

static void print_times(const struct bench *b, const char *name, enum figure figure, double work, const char *how)
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

static void report(const struct bench *b)
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
    printf("%s, %s, %zu images, %zu prompts of %zu tokens, %zu experts, %zu rounds%s\n", b->shape->name,
           b->backend->description, b->images, b->prompts, b->shape->positions, b->experts, b->shape->rounds,
           b->skewed ? ", skewed routers" : "");
    printf("  two experts take      %.0f%% of a block's choices in the image tower, %.0f%% in the text tower\n",
           100 * b->shares[TOWER_IMAGE], 100 * b->shares[TOWER_TEXT]);
    printf("  trainable parameters  %zu, %.1f MiB\n", values, (double)values * 4 / (1 << 20));
    printf("  product rate          %.0f GFLOP/s (%.0f to %.0f; %s, %zu x %d x %d)\n", rate.middle / 1e9,
           rate.lowest / 1e9, rate.highest / 1e9, precision_name(b->backend->precision), product_rows(b), PRODUCT_K,
           PRODUCT_N);
    print_times(b, "training step", STEP, cost_adapter_step(n, b->images, b->prompts, b->shape->positions, &experts),
                b->repeated.recording.owner != NULL ? ", recorded" : "");
    printf("  of which the update   %.4f s, of what a step used\n", updating.middle);
    printf("  a merge of all blocks %.4f s, every %d steps %.3f%% of a step\n", merging.middle, MERGE_EVERY,
           100 * merging.middle / MERGE_EVERY / stepping.middle);
    print_times(b, "evaluation batch", EVALUATION,
                cost_images(n, b->evaluated) + cost_image_experts(n, b->evaluated, &experts), "");
    printf("  images evaluated      %.1f a second (%.1f to %.1f), in batches of %zu\n", images / evaluation.middle,
           images / evaluation.highest, images / evaluation.lowest, b->evaluated);
    if (b->backend->asynchronous)
        printf("  peak device memory    %.2f GB\n", (double)b->taken / 1e9);
}

/* Of a figure of each round: of f32 and bf16, or of skewed and uniform routers. */
static void print_ratio(const struct bench *slow, const struct bench *fast, const char *words, enum figure figure)
{
    double ratios[MOST_FIGURES];
    for (size_t i = 0; i < slow->shape->rounds; i++)
        ratios[i] = slow->rounds[figure][i] / fast->rounds[figure][i];
    struct figures times = figures_of(ratios, slow->shape->rounds);
    printf("%s %.2f times (%.2f to %.2f)\n", words, times.middle, times.lowest, times.highest);
}

/* --- Command line --- */

static bool read_words(struct bench *b, int argc, char **argv)
{
    size_t given = 0;
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
            const char *precision = argv[++i];
            b->both = strcmp(precision, "both") == 0;
            b->settings.precision = strcmp(precision, "bf16") == 0 ? PRECISION_BF16 : PRECISION_F32;
        } else if (strcmp(argv[i], "--profile") == 0) {
            b->profile = true;
        } else if (strcmp(argv[i], "--skew") == 0) {
            b->skew = true;
        } else if (strcmp(argv[i], "--budget") == 0) {
            b->budget = true;
        } else if (!known) {
            char *end;
            size_t number = strtoul(argv[i], &end, 10);
            if (*end != 0 || number == 0 || given == 3)
                return false;
            b->numbers[given++] = number;
        }
    }
    return !(b->both && b->skew);
}

static void close_bench(struct bench *b)
{
    b->backend->ops->recording_destroy(b->backend, &b->repeated.recording);
    adapters_destroy(b->adapters);
    clip_destroy(b->clip);
    for (int t = 0; t < TOWERS; t++)
        b->backend->ops->arena_destroy(b->backend, &b->arenas[t]);
    b->backend->ops->arena_destroy(b->backend, &b->model);
    backend_close(b->backend);
}

static void open_bench(struct bench *b)
{
    size_t left = b->backend->ops->memory_left(b->backend);
    bool device = b->backend->asynchronous;
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
    b->repeated = (struct repeated){.body = forward_and_backward, .context = b};
    open_model(b);
    open_batch(b);
    if (b->skewed)
        must(skew_routers(b->backend, forward_and_backward, b, &error));
    if (b->budget)
        return;
    warm_up(b);
    b->taken = left - b->backend->ops->memory_left(b->backend);
    open_product(b);
}

/* The first step, which is queued and makes room, then one whose operations are counted. On an emulated device nothing
 * runs, and closing would wait for it. */
static void print_budget(struct bench *b)
{
    size_t whole;
    open_bench(b);
    must(forward_and_backward(b, &error));
    must(budget_nodes(b->backend, forward_and_backward, b, &whole, &error));
    budget_begin(b->backend);
    must(forward_and_backward(b, &error));
    if (budget_counted() != whole) {
        fprintf(stderr, "step: the operations have %zu nodes, a graph of all of them has %zu\n", budget_counted(),
                whole);
        exit(1);
    }
    update(b);
    printf("%s, %s, %s: %zu images, %zu prompts, %zu experts\n\n", b->shape->name, b->backend->description,
           precision_name(b->backend->precision), b->images, b->prompts, b->experts);
    budget_print(b->backend);
    fflush(stdout);
    _exit(0);
}

static void run(struct bench *benches, size_t count)
{
    for (size_t k = 0; k < count; k++)
        open_bench(&benches[k]);
    for (size_t i = 0; i < benches->shape->rounds; i++)
        for (size_t k = 0; k < count; k++)
            time_round(&benches[k], i);
    for (size_t k = 0; k < count; k++) {
        measure_shares(&benches[k]);
        report(&benches[k]);
    }
    if (count == 2 && benches->both) {
        print_ratio(&benches[0], &benches[1], "bf16 beside f32: speed of a step", STEP);
        print_ratio(&benches[0], &benches[1], "bf16 beside f32: speed of evaluation", EVALUATION);
    } else if (count == 2) {
        print_ratio(&benches[1], &benches[0], "skewed beside uniform: time of a step", STEP);
        print_ratio(&benches[1], &benches[0], "skewed beside uniform: time of evaluation", EVALUATION);
    }
    print_peak_memory();
    for (size_t k = 0; k < count; k++) {
        if (benches[k].profile)
            profile(&benches[k]);
        close_bench(&benches[k]);
    }
}

int main(int argc, char **argv)
{
    static struct bench benches[2] = {{.shape = &shapes[0], .settings = {.name = "cpu"}}};
    if (!read_words(&benches[0], argc, argv)) {
        fprintf(stderr, "usage: step [--backend cpu|cuda] [--precision f32|bf16|both] [--profile] [--skew] [--budget] "
                        "[vit_b_16|mini] [images] [prompts] [experts]; --skew has one precision\n");
        return 2;
    }
    benches[1] = benches[0];
    benches[1].skewed = benches[0].skew;
    if (benches[0].both)
        benches[1].settings.precision = PRECISION_BF16;
    must(backend_open(&benches[0].backend, &benches[0].settings, &error));
    if (benches[0].budget)
        print_budget(&benches[0]);
    if (!benches[0].both && !benches[0].skew) {
        run(benches, 1);
        return 0;
    }
    status second = backend_open(&benches[1].backend, &benches[1].settings, &error);
    if (second != OK && second != ERROR_DEVICE)
        must(second);
    run(benches, second == OK ? 2 : 1);
    must(second);
    return 0;
}
