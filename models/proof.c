#include "models/proof.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"

/* --- Values --- */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void proof_draw(float *values, size_t n, uint64_t first, const struct backend *device)
{
    struct rng rng = rng_make(1, RNG_TEST, 0, 0);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(rng_normal(&rng, first + i));
        values[i] = float_of(device->precision == PRECISION_BF16 ? (bits + 0x8000) & 0xffff0000u : bits);
    }
}

status proof_compare(const char *operation, const float *cpu, const float *device, size_t n, double tolerance,
                     struct error *error)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(cpu[i]) && fabs((double)cpu[i]) > largest)
            largest = fabs((double)cpu[i]);
    for (size_t i = 0; i < n; i++) {
        bool same = cpu[i] == device[i] || (isnan(cpu[i]) && isnan(device[i])) ||
                    fabs((double)cpu[i] - (double)device[i]) <= tolerance * largest;
        if (!same)
            return error_set(error, ERROR_DEVICE, "%s: value %zu of %zu is %.9g, on the CPU %.9g, tolerance %.3g",
                             operation, i, n, (double)device[i], (double)cpu[i], tolerance * largest);
    }
    return OK;
}

/* --- Operands: the same ones on both sides --- */

enum {
    TAKEN = 112,
    ROUTERS = 2,
    PREFIX = 7,
    GATES = 2 * PREFIX,
    SIDE = 14,
    PATCH = 7,
    PATCHES = 4,
    COLOURS = 3,
    WORDS = 11,
    CROWD = 8200
};

/* What memory holds before an operation: numbers drawn anew for each, POSITIVE ones, or what it was given. All are compared after
 * it, but those that a backend keeps as it likes. */
enum content { NORMAL, POSITIVE, GIVEN, AS_IT_LIKES };

struct shape {
    size_t samples, positions, heads, width, experts, top_k, hidden;
    enum activation activation;
    bool causal;
};
/* Heads that fill no kernel's columns, and experts by slots; the heads of ViT-B/16, and experts by sample, one of which has more
 * slots than a unit of its gradients; more positions than attention keeps at once. */
static const struct shape shapes[] = {{7, 9, 2, 144, 5, 3, 20, ACTIVATION_QUICK_GELU, true},
                                      {7, 197, 1, 64, 6, 2, 40, ACTIVATION_RELU, false},
                                      {1, 300, 1, 128, 4, 2, 64, ACTIVATION_RELU, true}};

/* clang-format off */
/* Name, rows, columns: f32; and of the operands' type. */
#define RESIDUAL(X) X(x, rows, d) X(other, rows, d) X(dx, rows, d)
#define OPERANDS(X) \
    X(y, rows, d) X(dy, rows, d) X(dz, rows, d) X(wide, rows, 3 * d) X(dwide, rows, 3 * d) X(slots, choices * l, d) \
    X(units, choices * l, m) X(dunits, choices * l, m) X(before, choices * l, m)
/* Name, values: f32. */
#define VALUES(X) \
    X(weight, 3 * d * d) X(dweight, 3 * d * d) X(bias, 3 * d) X(gain, d) X(dgain, d) X(dbias, d) X(statistics, 2 * rows) \
    X(norms, rows) X(loss, 3) X(averages, samples * d) X(routers, ROUTERS * d * e) X(drouters, ROUTERS * d * e) \
    X(noise, ROUTERS * d * e) X(dnoise, ROUTERS * d * e) X(logits, samples * e) X(dlogits, samples * e) \
    X(noise_logits, samples * e) X(drawn, samples * e) X(gates, choices) X(dgates, choices) \
    X(keys, ROUTERS * 2 * PREFIX * d) X(dkeys, ROUTERS * 2 * PREFIX * d) X(table, WORDS * d) X(position, l * d) \
    X(scores, rows * GATES) X(dscores, rows * GATES) X(opening, l * GATES) X(dopening, l * GATES) \
    X(residual, rows * d) X(dresidual, rows * d) X(seen, samples * GATES) X(means, GATES) X(patches, samples * PATCHES * COLOURS * PATCH * PATCH) X(tokens, rows * d) X(moments, rows * d) \
    X(first, e * m * d) X(first_bias, e * m) X(second, e * d * m) X(second_bias, e * d) X(dfirst, e * m * d) \
    X(dfirst_bias, e * m) X(dsecond, e * d * m) X(dsecond_bias, e * d)
/* Name, how many, and first + i * step modulo `below`, less `less`. */
#define INTEGERS(X) \
    X(pixels, samples * SIDE * SIDE, 90001, 777767777, 2147483647, 0) X(router, samples, 1, 1, ROUTERS + 1, 1) \
    X(labels, rows, 1, 5, d, 0) X(mixed, rows, 2, 7, d, 0) X(turned, rows, rows - 1, rows - 1, rows, 0) \
    X(lengths, samples, l - 2, 3, l - 1, -2) X(words, rows, 3, 4, WORDS, 0) X(counts, e, 1, 1, 99, 0) \
    X(pairs, e * e, 1, 1, 99, 0) X(used, e, 1, 1, 2, 0) X(frozen, e, 0, 1, 2, 0) X(integers, rows, 0, 1, 99, 0) \
    X(flags, 3, 2, 1, 3, 0) X(steps, 3, 4, 1, 99, 0) X(crowd, CROWD, 0, 1, 3, 1) X(skips, 3, 1, 1, 3, 0)
/* clang-format on */

#define MATRIX(name, ...) struct matrix name;
#define FLOATS(name, ...) float *name;
#define WHOLE(name, ...) int32_t *name;
struct side {
    struct backend *backend;
    const struct backend_ops *ops;
    struct arena arena, scratch;
    struct shape z;
    size_t rows, count;
    struct taken {
        void *memory;
        enum tensor_type type;
        size_t n;
        enum content content;
    } taken[TAKEN];
    RESIDUAL(MATRIX)
    OPERANDS(MATRIX)
    VALUES(FLOATS)
    INTEGERS(WHOLE) void *kept, *dkept, *offsets, *state; /* kept: hidden units as a backend likes them */
    float *lse, *squares, *infinite, *heads;
    struct dispatch given, routed, parted; /* parted: the crowd's */
    struct error failed;                   /* the first that could not be taken; then pointers are NULL */
};

/* Memory for n values, which are those of `host` unless that is NULL. */
static void *take(struct side *s, enum tensor_type type, size_t n, enum content content, const void *host)
{
    struct tensor memory = {0};
    if (s->failed.code == OK)
        tensor_take(&memory, &s->arena, type, "proof", 1, &n, &s->failed);
    if (s->failed.code == OK && host != NULL)
        s->ops->upload(s->backend, memory.data, host, tensor_bytes(&memory), &s->failed);
    s->taken[s->count++] = (struct taken){memory.data, type, n, content};
    return memory.data;
}

static int32_t *take_integers(struct side *s, size_t n, size_t first, size_t step, size_t below, int32_t less)
{
    OWNED int32_t *host = xmalloc(array_size(n, sizeof *host));
    for (size_t i = 0; i < n; i++)
        host[i] = (int32_t)((first + i * step) % below) - less;
    return take(s, TENSOR_I32, n, GIVEN, host);
}

/* Every sample that has a router chooses expert 0 and, in turn, others. */
static struct dispatch take_dispatch(struct side *s, size_t samples, size_t experts, size_t top_k)
{
    size_t n = samples * top_k, filled = 0;
    OWNED int32_t *host = xcalloc(4 * n + experts + 1, sizeof *host);
    int32_t *slot = host + n, *sample = slot + n, *choice = sample + n, *offsets = choice + n;
    for (size_t i = 0; i < n; i++) {
        size_t b = i / top_k, k = i % top_k;
        host[i] = b % (ROUTERS + 1) == ROUTERS ? -1 : k == 0 ? 0 : (int32_t)(1 + (b + k) % (experts - 1));
        slot[i] = -1;
    }
    for (size_t e = 0; e < experts; offsets[++e] = (int32_t)filled)
        for (size_t i = 0; i < n; i++)
            if (host[i] == (int32_t)e) {
                slot[i] = (int32_t)filled;
                sample[filled] = (int32_t)(i / top_k);
                choice[filled++] = (int32_t)i;
            }
    return (struct dispatch){.samples = samples,
                             .experts = experts,
                             .top_k = top_k,
                             .chosen = take(s, TENSOR_I32, n, GIVEN, host),
                             .gates = take(s, TENSOR_F32, n, NORMAL, NULL),
                             .slot = take(s, TENSOR_I32, n, GIVEN, slot),
                             .sample = take(s, TENSOR_I32, n, GIVEN, sample),
                             .choice = take(s, TENSOR_I32, n, GIVEN, choice),
                             .offsets = take(s, TENSOR_I32, experts + 1, GIVEN, offsets)};
}

/* Gives back all operands, so that others can take their place. */
static void release(struct side *s)
{
    for (size_t i = 0; i < s->count; i++)
        s->backend->forget(s->backend, s->taken[i].memory, s->taken[i].n);
    s->count = 0;
    s->failed.code = OK;
    arena_reset(&s->arena);
}

static status take_all(struct side *s, const struct shape *z, struct error *error)
{
    size_t samples = z->samples, l = z->positions, d = z->width, e = z->experts, m = z->hidden,
           choices = samples * z->top_k, rows = samples * l;
    const struct step_state state = {.seed = 7, .task = 3, .step = 2, .learning_rate = 0.5f};
    const uint64_t offsets[] = {0, 5, rows * d / 2, rows * d - 1};
    enum tensor_type type = backend_operand_type(s->backend);
    s->z = *z;
    s->rows = rows;
    release(s);
#define TAKE_RESIDUAL(name, height, columns)                                                                           \
    s->name = matrix_rows(take(s, TENSOR_F32, (height) * (columns), NORMAL, NULL), height, columns);
#define TAKE_OPERAND(name, height, columns)                                                                            \
    s->name = (struct matrix){take(s, type, (height) * (columns), NORMAL, NULL), type, height, columns, columns};
#define TAKE_VALUES(name, n) s->name = take(s, TENSOR_F32, n, NORMAL, NULL);
#define TAKE_INTEGERS(name, ...) s->name = take_integers(s, __VA_ARGS__);
    RESIDUAL(TAKE_RESIDUAL)
    OPERANDS(TAKE_OPERAND)
    VALUES(TAKE_VALUES) INTEGERS(TAKE_INTEGERS) s->kept = take(s, type, choices * l * m, AS_IT_LIKES, NULL);
    s->dkept = take(s, type, choices * l * m, AS_IT_LIKES, NULL);
    s->lse = take(s, TENSOR_F32, rows * z->heads, AS_IT_LIKES, NULL);
    s->state = take(s, TENSOR_U8, sizeof state, AS_IT_LIKES, &state);
    s->offsets = take(s, TENSOR_U8, sizeof offsets, AS_IT_LIKES, offsets);
    s->infinite = take(s, TENSOR_F32, 3, GIVEN, (const float[]){1, -2, INFINITY});
    s->heads = take(s, TENSOR_F32, 1, GIVEN, (const float[]){2});
    s->squares = take(s, TENSOR_F32, rows * d, POSITIVE, NULL);
    s->given = take_dispatch(s, samples, e, z->top_k);
    s->routed = take_dispatch(s, samples, e, z->top_k);
    s->parted = take_dispatch(s, CROWD, e, 1);
    return s->failed.code == OK ? OK : error_set(error, s->failed.code, "%s", s->failed.message);
}

/* --- Every operation: PROVE(name, its tolerance in f32 and in bf16, its operands); PROVE_AFTER(other, ...): what another leaves
 * is an operand, or is compared with it --- */

#define EXACT 0
#define SUMS 5e-5    /* in another order, and functions in f32 */
#define ROUTED 2e-4  /* differences of exponentials */
#define ROUNDED 2e-2 /* operands or results in bf16 */

#define RUN(name, before, operation, ...)                                                                              \
    static status name(struct side *s, struct error *error)                                                            \
    {                                                                                                                  \
        TRY(before(s, error));                                                                                         \
        return s->ops->operation(s->backend, &(struct operation){__VA_ARGS__}, error);                                 \
    }
#define PROVE_AFTER(before, operation, in_f32, in_bf16, ...)                                                           \
    static const double tolerances_of_##operation[] = {[PRECISION_F32] = (in_f32), [PRECISION_BF16] = (in_bf16)};      \
    RUN(prove_##operation, before, operation, __VA_ARGS__)
#define PROVE(...) PROVE_AFTER(nothing, __VA_ARGS__)

static status nothing(struct side *s, struct error *error)
{
    return OK;
}

/* clang-format off */
/* A linear layer, after the gradients of its input and of its weight. */
#define LINEAR(values) matrix_rows(values, 3 * s->z.width, s->z.width)
RUN(input_gradient, nothing, gemm, .a = s->dwide, .b = LINEAR(s->weight), .out = s->dz, .backward = true,
    .activation = s->z.activation, .before = s->dy)
RUN(weight_gradient, input_gradient, gemm, .a = s->dwide, .b = s->y, .transpose_a = true, .accumulate = true,
    .out = LINEAR(s->dweight))
PROVE_AFTER(weight_gradient, gemm, SUMS, ROUNDED, .a = s->y, .b = LINEAR(s->weight), .transpose_b = true,
            .bias = s->bias, .out = s->wide, .activation = s->z.activation)
#define GROUPS \
    .groups = s->z.experts, .rows_per_slot = s->z.positions, .offsets = s->given.offsets
#define STACKED(values) matrix_rows(values, s->z.experts * s->z.hidden, s->z.width)
RUN(weights_by_expert, nothing, grouped_gemm, GROUPS, .kind = GROUPED_WEIGHTS, .a = s->dunits, .b = s->slots,
    .out = STACKED(s->dfirst), .column_sums = s->dfirst_bias, .frozen = s->frozen)
PROVE_AFTER(weights_by_expert, grouped_gemm, SUMS, ROUNDED, GROUPS, .kind = GROUPED_ROWS, .a = s->slots,
            .b = STACKED(s->first), .transpose_b = true, .bias = s->first_bias, .activation = s->z.activation,
            .out = s->units)
PROVE(layer_norm, SUMS, ROUNDED, .x = s->x, .y = s->y, .gain = s->gain, .bias = s->bias, .statistics = s->statistics,
      .epsilon = 1e-5f)
PROVE(layer_norm_backward, SUMS, ROUNDED, .x = s->x, .dy = s->dy, .dx = s->dx, .addend = s->other, .gain = s->gain,
      .statistics = s->statistics, .dgain = s->dgain, .dbias = s->dbias)
PROVE(activate, SUMS, SUMS, .activation = s->z.activation, .x = s->x, .out = s->dx)
PROVE(activate_backward, SUMS, SUMS, .activation = s->z.activation, .x = s->x, .dy = s->other, .dx = s->dx)
PROVE(dropout, SUMS, SUMS, .x = s->x, .addend = s->other, .out = s->dx, .probability = 0.25f, .base = 40,
      .state = s->state)

#define HEADS \
    .operands = {.batch = s->z.samples, .positions = s->z.positions, .width = s->z.width, .heads = s->z.heads, \
    .causal = s->z.causal, .type = s->y.type, .qkv = s->wide.data}
PROVE(attention, SUMS, ROUNDED, HEADS, .out = s->y.data, .lse = s->lse)
PROVE_AFTER(prove_attention, attention_backward, SUMS, ROUNDED, HEADS, .out = s->y.data,
            .dout = s->dy.data, .lse = s->lse, .dqkv = s->dwide.data)
#define PREFIXES \
    .prefix = {.batch = s->z.samples, .positions = s->z.positions, .width = s->z.width, .heads = s->z.heads, \
    .length = PREFIX, .type = s->y.type, .router = s->router, .weights = s->averages, .values = s->keys, \
    .qkv = s->wide.data}
PROVE(prefix_attention, SUMS, ROUNDED, PREFIXES, .out = s->y.data)
PROVE(prefix_attention_backward, SUMS, ROUNDED, PREFIXES, .routers = ROUTERS, .dout = s->dy.data,
      .dqkv = s->dwide.data, .dvalues = s->dkeys)
#define GATED \
    .prefix = {.batch = s->z.samples, .positions = s->z.positions, .width = s->z.width, .heads = 2, .length = PREFIX, \
    .type = s->y.type, .router = s->router, .weights = s->averages, .used = s->heads, .scores = s->scores, \
    .bias = s->opening, .values = s->keys, .residual = s->residual, .scale = 0.5f, .certain = 0.5f, .mean = s->means, \
    .variance = s->squares}
PROVE(gated_prefix, SUMS, ROUNDED, GATED, .out = s->y.data, .seen = s->seen)
PROVE(gated_prefix_backward, SUMS, ROUNDED, GATED, .dout = s->dy.data, .dscores = s->dscores,
      .dresidual = s->dresidual, .dvalues = s->dkeys, .dbias = s->dopening)
PROVE(patchify, SUMS, SUMS, .images = &(struct tensor){s->pixels, TENSOR_U8, 4, {s->z.samples, SIDE, SIDE, COLOURS},
      "pixels"}, .patch = PATCH, .per_image = PATCHES, .mean = {0.5f, 0.4f, 0.3f}, .std = {0.2f, 0.3f, 0.4f},
      .out = s->patches)
#define TOKENS .batch = s->z.samples, .per_image = s->z.positions - 1, .width = s->z.width
PROVE(assemble_tokens, SUMS, SUMS, TOKENS, .patches = s->tokens, .class_embedding = s->gain, .position = s->position,
      .x = s->dx.data)
PROVE(assemble_tokens_backward, SUMS, SUMS, TOKENS, .dx = s->dx.data, .dpatches = s->tokens, .dclass = s->dgain,
      .dposition = s->position)
#define PROMPTS \
    .batch = s->z.samples, .positions = s->z.positions, .context = s->z.positions, .width = s->z.width, \
    .tokens = s->words
PROVE(embed_tokens, SUMS, SUMS, PROMPTS, .table = s->table, .position = s->position, .x = s->dx.data)
PROVE(embed_tokens_backward, SUMS, SUMS, PROMPTS, .dx = s->dx.data, .dtable = s->table, .dposition = s->position)
PROVE(arange, EXACT, EXACT, .count = s->rows, .step = 1, .lengths = s->lengths, .positions = s->z.positions,
      .out = s->integers)
PROVE(spread_positions, EXACT, EXACT, .batch = s->z.samples, .positions = s->z.positions, .lengths = s->lengths,
      .value = s->router, .out = s->integers)
PROVE(gather_rows, EXACT, EXACT, .x = s->x, .out = s->dx, .rows = s->turned)
PROVE(scatter_rows, SUMS, SUMS, .x = s->x, .out = s->dx, .rows = s->turned)
PROVE(column_sum, SUMS, SUMS, .x = s->x, .out = s->dgain)
#define MEANS .batch = s->z.samples, .positions = s->z.positions, .width = s->z.width, .lengths = s->lengths
PROVE(mean_positions, SUMS, SUMS, MEANS, .first = 1, .x = s->x.data, .out = s->averages)
PROVE(mean_positions_backward, SUMS, SUMS, MEANS, .dout = s->averages, .dx = s->dx.data)
PROVE(weighted_sum, SUMS, SUMS, .count = 2, .n = s->rows * s->z.width, .inputs = {s->x.data, s->other.data},
      .weights = {0.75f, -2}, .divisor = 3, .out = s->dx.data)
PROVE(average_experts, SUMS, SUMS, .experts = s->z.experts, .n = s->z.hidden * s->z.width, .frozen = s->frozen,
      .share = 0.25f, .values = s->first)
PROVE(multiply, SUMS, SUMS, .n = s->rows * s->z.width, .a = s->x.data, .b = s->other.data, .out = s->dx.data,
      .accumulate = true)
PROVE(normalize, SUMS, SUMS, .x = s->x, .y = s->dx, .norms = s->norms)
PROVE(normalize_backward, SUMS, SUMS, .y = s->x, .dy = s->other, .dx = s->dx, .norms = s->norms)
PROVE(sparse_softmax, SUMS, SUMS, .x = s->x, .y = s->dx, .top_k = 5, .temperature = 0.5f, .threshold = 1)
PROVE(sparse_softmax_backward, SUMS, SUMS, .y = s->x, .dy = s->other, .dx = s->dx, .temperature = 0.5f)
PROVE(cross_entropy, SUMS, SUMS, .logits = s->x, .dlogits = s->dx, .labels = s->labels, .others = s->mixed,
      .shares = s->norms, .smoothing = 0.1f, .weight = 40, .loss = s->loss, .right = s->loss + 1)
PROVE(soft_cross_entropy, SUMS, SUMS, .logits = s->x, .targets = s->other, .dlogits = s->dx, .temperature = 2,
      .weight = 40, .loss = s->loss)
PROVE(penalty, SUMS, SUMS, .n = s->rows * s->z.width, .values = s->x.data, .anchor = s->other.data,
      .importance = s->squares, .strength = 0.5f, .gradients = s->dx.data, .loss = s->loss)
PROVE(argmax, EXACT, EXACT, .x = s->x, .out = s->integers)
PROVE(squared_error, SUMS, SUMS, .x = s->x, .y = s->other, .dx = s->dx, .scale = 2, .errors = s->norms)
PROVE(route, ROUTED, ROUTED, .batch = s->z.samples, .positions = s->z.positions, .width = s->z.width,
      .experts = s->z.experts, .top_k = s->z.top_k, .routers = ROUTERS, .x = s->x.data, .routers_value = s->routers,
      .noise_value = s->noise, .router = s->router, .training = true, .noise_base = 40, .state = s->state,
      .epsilon = 0.01f, .dispatch = &s->routed, .noise_logits = s->noise_logits, .drawn = s->drawn,
      .logits = s->logits, .counts = s->counts, .used = s->used, .frozen = s->frozen)
PROVE(route_backward, ROUTED, ROUTED, .batch = s->z.samples, .positions = s->z.positions, .width = s->z.width,
      .experts = s->z.experts, .top_k = s->z.top_k, .x = s->x.data, .routers_value = s->routers,
      .noise_value = s->noise, .router = s->router, .dispatch = &s->given, .noise_logits = s->noise_logits,
      .drawn = s->drawn, .dgates = s->dgates, .dlogits = s->dlogits, .dnoise_logits = s->logits,
      .drouters = s->drouters, .dnoise = s->dnoise, .dx = s->dx.data)
PROVE_AFTER(prove_route, balance, ROUTED, ROUTED, .dispatch = &s->routed, .epsilon = 0.01f, .weight = 2, .share = 0.5f,
            .logits = s->logits, .noise_logits = s->noise_logits, .drawn = s->drawn, .dnoise_logits = s->dlogits,
            .dgates = s->dgates, .loss = s->loss, .unweighted = s->loss + 1)
PROVE(route_softmax, ROUTED, ROUTED, .samples = s->z.samples, .width = s->z.width, .experts = s->z.experts,
      .top_k = s->z.top_k, .routers = ROUTERS, .x = s->x.data, .routers_value = s->routers, .router = s->router,
      .training = true, .noise_deviation = 0.5f, .noise_base = 40, .state = s->state, .limit = 3,
      .dispatch = &s->routed, .probabilities = s->logits, .aligned = ALIGN_SHARED, .weights = s->gates,
      .counts = s->counts, .used = s->used, .frozen = s->frozen)
PROVE(route_softmax_backward, ROUTED, ROUTED, .samples = s->z.samples, .width = s->z.width, .experts = s->z.experts,
      .top_k = s->z.top_k, .routers = ROUTERS, .x = s->x.data, .routers_value = s->routers, .router = s->router,
      .dispatch = &s->given, .probabilities = s->logits, .dgates = s->dgates, .dprobabilities = s->dlogits,
      .drouters = s->drouters, .dx = s->dx.data)
PROVE_AFTER(prove_route_softmax, balance_softmax, ROUTED, ROUTED, .kind = s->z.causal ? BALANCE_WIDENET : BALANCE_RMOE,
            .dispatch = &s->routed, .probabilities = s->logits, .weight = 2, .share = 0.5f,
            .dprobabilities = s->dlogits, .loss = s->loss, .unweighted = s->loss + 1)
PROVE(partition, EXACT, EXACT, .router = s->crowd, .base = 40, .state = s->state, .dispatch = &s->parted,
      .counts = s->counts, .used = s->used, .frozen = s->frozen)

#define SLOTS(columns) .dispatch = &s->given, .rows_per_sample = s->z.positions, .width = (columns)
PROVE(dispatch_gather, EXACT, ROUNDED, SLOTS(s->z.width), .x_type = TENSOR_F32, .out_type = s->slots.type,
      .x = s->x.data, .out = s->slots.data)
PROVE(dispatch_combine, SUMS, SUMS, SLOTS(s->z.width), .rows_type = s->slots.type, .rows = s->slots.data,
      .weights = s->gates, .scale = 0.5f, .y = s->dx.data)
PROVE(dispatch_dropout, SUMS, ROUNDED, SLOTS(s->z.hidden), .probability = 0.25f, .base = 40, .state = s->state,
      .type = s->units.type, .hidden = s->units.data)
PROVE(expert_gate_backward, SUMS, ROUNDED, .dispatch = &s->given, .rows_per_sample = s->z.positions,
      .hidden = s->z.hidden, .width = s->z.width, .scale = 0.5f, .keep = 0.75f, .type = s->units.type,
      .activation = s->z.activation, .before = s->before.data, .h = s->units.data, .dh = s->dunits.data,
      .dy = s->slots.data, .up_bias = s->second_bias, .dgates = s->dgates, .dup_bias = s->dsecond_bias,
      .frozen = s->frozen)
PROVE(count_pairs, EXACT, EXACT, .samples = s->z.samples, .experts = s->z.experts, .top_k = s->z.top_k,
      .first = s->given.chosen, .second = s->given.chosen, .counts = s->pairs)

#define STACK \
    .stack = {.dispatch = &s->given, .rows_per_sample = s->z.positions, .width = s->z.width, \
    .hidden = s->z.hidden, .activation = s->z.activation, .scale = 0.5f, .first = s->first, \
    .first_bias = s->first_bias, .second = s->second, .second_bias = s->second_bias, .probability = 0.25f, \
    .base = 40, .state = s->state, .arena = &s->scratch}
PROVE(experts, SUMS, ROUNDED, STACK, .training = true, .x_type = TENSOR_F32, .x = s->x.data, .units = s->kept,
      .y = s->dx.data)
PROVE_AFTER(prove_experts, experts_backward, SUMS, ROUNDED, STACK, .x_type = TENSOR_F32, .dy_type = TENSOR_F32,
            .x = s->x.data, .dy = s->other.data, .units = s->kept, .dunits = s->dkept, .dgates = s->dgates,
            .dfirst = s->dfirst, .dfirst_bias = s->dfirst_bias, .dsecond = s->dsecond,
            .dsecond_bias = s->dsecond_bias, .frozen = s->frozen)
PROVE_AFTER(prove_experts_backward, experts_backward_input, SUMS, ROUNDED, STACK, .dunits = s->dkept,
            .dx = s->dx.data)
PROVE(find_not_finite, EXACT, EXACT, .n = 3, .values = s->infinite, .found = s->integers)
PROVE(skip_step, EXACT, EXACT, .guard = (struct step_guard *)s->skips, .state = s->state,
      .lists = {{s->z.experts, s->counts, s->used}})
#define UPDATE \
    .update = {.segments = 3, .n = s->rows * s->z.width - 1, .offsets = s->offsets, .flag = s->flags, \
    .flags = s->flags, .steps = s->steps, .values = s->x.data, .gradients = s->dx.data, \
    .first_moment = s->moments, .second_moment = s->squares, .state = s->state}
PROVE(adamw, SUMS, SUMS, UPDATE, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1, .l2 = 0.1)
PROVE(sgd, SUMS, SUMS, UPDATE, .momentum = 0.9, .l2 = 0.1)
PROVE(lamb, SUMS, SUMS, UPDATE, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1)
/* clang-format on */

#define ENTRY(operation) {#operation, prove_##operation, tolerances_of_##operation},
static const struct operation {
    const char *name;
    status (*run)(struct side *s, struct error *error);
    const double *tolerances; /* by precision */
} operations[] = {BACKEND_OPERATIONS(ENTRY)};

/* --- Comparing --- */

/* Operands are parts of these numbers, another part each time. */
enum { NUMBERS = 1 << 19, APART = 7919 };

struct proof {
    struct side cpu, device;
    float *numbers, *of_cpu, *of_device; /* [NUMBERS] each; the latter as they are read */
    size_t drawn;
};

static status write_values(const struct side *s, const struct taken *t, const float *values, uint16_t *halves,
                           struct error *error)
{
    for (size_t i = 0; i < t->n && t->type == TENSOR_BF16; i++)
        halves[i] = (uint16_t)(bits_of(values[i]) >> 16);
    if (t->type == TENSOR_F32) /* the experts' weights are parameters: a backend may keep copies */
        s->backend->renew(s->backend, t->memory, t->n);
    return s->ops->upload(s->backend, t->memory, t->type == TENSOR_BF16 ? (const void *)halves : values,
                          t->n * tensor_type_size(t->type), error);
}

/* From the last one on, so that a value's place is written after it was read. */
static status read_values(const struct side *s, const struct taken *t, float *values, struct error *error)
{
    TRY(s->ops->download(s->backend, values, t->memory, t->n * tensor_type_size(t->type), error));
    const int32_t *whole = (const int32_t *)(const void *)values;
    const uint16_t *halves = (const uint16_t *)(const void *)values;
    for (size_t i = t->n; i-- > 0 && t->type != TENSOR_F32;)
        values[i] = t->type == TENSOR_I32 ? (float)whole[i] : float_of((uint32_t)halves[i] << 16);
    return OK;
}

static status draw(struct proof *p, struct error *error)
{
    for (size_t i = 0; i < p->cpu.count; i++) {
        const struct taken *t = &p->cpu.taken[i];
        const float *part = p->numbers + p->drawn % (NUMBERS - t->n);
        if (t->content != NORMAL && t->content != POSITIVE)
            continue;
        p->drawn += APART;
        for (size_t j = 0; j < t->n; j++)
            p->of_cpu[j] = t->content == POSITIVE ? fabsf(part[j]) : part[j];
        TRY(write_values(&p->cpu, t, p->of_cpu, (uint16_t *)p->of_device, error));
        TRY(write_values(&p->device, &p->device.taken[i], p->of_cpu, (uint16_t *)p->of_device, error));
    }
    return OK;
}

static status prove(struct proof *p, const struct operation *operation, struct error *error)
{
    double tolerance = operation->tolerances[p->device.backend->precision];
    TRY(draw(p, error));
    TRY(operation->run(&p->cpu, error));
    TRY(operation->run(&p->device, error));
    for (size_t i = 0; i < p->cpu.count; i++) {
        const struct taken *t = &p->cpu.taken[i];
        if (t->content == AS_IT_LIKES)
            continue;
        TRY(read_values(&p->cpu, t, p->of_cpu, error));
        TRY(read_values(&p->device, &p->device.taken[i], p->of_device, error));
        TRY(proof_compare(operation->name, p->of_cpu, p->of_device, t->n, t->type == TENSOR_I32 ? 0 : tolerance,
                          error));
    }
    return OK;
}

static status prove_all(struct proof *p, struct error *error)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        TRY(take_all(&p->cpu, &shapes[i], error));
        TRY(take_all(&p->device, &shapes[i], error));
        for (size_t o = 0; o < sizeof operations / sizeof *operations; o++)
            TRY(prove(p, &operations[o], error));
    }
    return OK;
}

static status open_side(struct side *s, struct backend *backend, struct error *error)
{
    s->backend = backend;
    s->ops = backend->ops;
    TRY(s->ops->arena_create(backend, &s->arena, (size_t)1 << 30, "proof", error));
    return s->ops->arena_create(backend, &s->scratch, (size_t)1 << 30, "proof's scratch", error);
}

static void close_side(struct side *s)
{
    s->ops->arena_destroy(s->backend, &s->scratch);
    s->ops->arena_destroy(s->backend, &s->arena);
}

/* --- Rows of products: a row has the same bits however many come with it --- */

enum { DEPTH = 768, COLUMNS = 72, LARGEST = 65536 };

/* The first row and the last. */
static status products_of_rows(struct side *s, const struct gemm *product, size_t rows, float values[2][COLUMNS],
                               struct error *error)
{
    struct gemm o = *product;
    o.a.rows = o.out.rows = rows;
    TRY(s->ops->gemm(s->backend, &o, error));
    struct taken row = {o.out.data, o.out.type, COLUMNS, NORMAL};
    TRY(read_values(s, &row, values[0], error));
    row.memory = (char *)row.memory + (rows - 1) * COLUMNS * tensor_type_size(row.type);
    return read_values(s, &row, values[1], error);
}

static status prove_rows(struct proof *p, struct error *error)
{
    static const size_t counts[] = {1, 3, 8, 64, 197 * 64, LARGEST};
    struct side *s = &p->device;
    enum tensor_type type = backend_operand_type(s->backend);
    float alone[2][COLUMNS], among[2][COLUMNS];
    size_t row = DEPTH * tensor_type_size(type);
    release(s);
    struct gemm product = {.a = {take(s, type, LARGEST * DEPTH, NORMAL, NULL), type, LARGEST, DEPTH, DEPTH},
                           .b = matrix_rows(take(s, TENSOR_F32, DEPTH * COLUMNS, NORMAL, p->numbers), COLUMNS, DEPTH),
                           .bias = take(s, TENSOR_F32, COLUMNS, NORMAL, p->numbers),
                           .out = {take(s, type, LARGEST * COLUMNS, NORMAL, NULL), type, LARGEST, COLUMNS, COLUMNS},
                           .transpose_b = true};
    if (s->failed.code != OK)
        return error_set(error, s->failed.code, "%s", s->failed.message);
    s->taken[0].n = DEPTH;
    TRY(write_values(s, &s->taken[0], p->numbers, (uint16_t *)p->of_device, error));
    for (size_t rows = 1; rows < LARGEST; rows *= 2)
        TRY(s->ops->copy(s->backend, (char *)product.a.data + rows * row, product.a.data, rows * row, error));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        TRY(products_of_rows(s, &product, counts[i], i == 0 ? alone : among, error));
        for (size_t j = 0; i > 0 && j < 2 * COLUMNS; j++)
            if (memcmp(&among[j / COLUMNS][j % COLUMNS], &alone[0][j % COLUMNS], sizeof(float)) != 0)
                return error_set(error, ERROR_DEVICE,
                                 "gemm: value %zu of a row is %.9g by itself, and %.9g among %zu rows; expected the "
                                 "same bits (tolerance 0)",
                                 j % COLUMNS, (double)alone[0][j % COLUMNS], (double)among[j / COLUMNS][j % COLUMNS],
                                 counts[i]);
    }
    return OK;
}

status proof_of_operations(struct backend *cpu, struct backend *device, struct error *error)
{
    struct proof *p = xcalloc(1, sizeof *p);
    p->numbers = xmalloc(3 * NUMBERS * sizeof *p->numbers);
    p->of_cpu = p->numbers + NUMBERS;
    p->of_device = p->of_cpu + NUMBERS;
    proof_draw(p->numbers, NUMBERS, 0, device);
    status result = open_side(&p->cpu, cpu, error);
    NEXT(result, open_side(&p->device, device, error));
    NEXT(result, prove_all(p, error));
    NEXT(result, prove_rows(p, error));
    close_side(&p->device);
    close_side(&p->cpu);
    free(p->numbers);
    free(p);
    return result;
}
