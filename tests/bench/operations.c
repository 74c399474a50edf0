/* An operation without a function here does not compile: prepare_NAME fills its structure and says what it costs. */
#include "tests/bench/operations.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* --- Operands --- */

static float *floats(struct bench *b, size_t n)
{
    return drawn(b, n, TENSOR_F32);
}

static struct matrix matrix(struct bench *b, size_t rows, size_t columns)
{
    return matrix_rows(floats(b, rows * columns), rows, columns);
}

static const struct step_state *state(struct bench *b)
{
    return uploaded(b, &(struct step_state){.seed = 1, .learning_rate = 1e-4f}, sizeof(struct step_state));
}

static struct cost multiplied(double operations)
{
    return (struct cost){.operations = operations};
}

static struct cost moved(double bytes)
{
    return (struct cost){.bytes = bytes};
}

static double width_of(const struct bench *b)
{
    return (double)tensor_type_size(b->type);
}

/* Rows of all choices of the images. */
static size_t slot_rows(const struct bench *b)
{
    return b->slots * b->size->positions;
}

/* --- Each operation --- */

/* prepare_NAME, which needs no more than the operation's members; s is the bench's size. */
#define PREPARE(name, work, ...)                                                                                       \
    static struct cost prepare_##name(struct bench *b, struct name *o)                                                 \
    {                                                                                                                  \
        const struct size *s = b->size;                                                                                \
        (void)s;                                                                                                       \
        *o = (struct name){__VA_ARGS__};                                                                               \
        return work;                                                                                                   \
    }

PREPARE(gemm, multiplied(2.0 * (double)b->rows * (double)s->width * (double)s->hidden),
        .a = operand(b, b->rows, s->width), .b = operand(b, s->hidden, s->width), .transpose_b = true,
        .bias = floats(b, s->hidden), .activation = ACTIVATION_QUICK_GELU, .out = operand(b, b->rows, s->hidden))

static struct dispatch dispatch; /* borrowed by the operations that go along it */

static struct dispatch *take_dispatch(struct bench *b, size_t samples, size_t top_k)
{
    size_t choices = samples * top_k;
    dispatch = (struct dispatch){.samples = samples,
                                 .experts = b->size->experts,
                                 .top_k = top_k,
                                 .chosen = memory(b, choices * sizeof(int32_t)),
                                 .gates = memory(b, choices * sizeof(float)),
                                 .slot = memory(b, choices * sizeof(int32_t)),
                                 .sample = memory(b, choices * sizeof(int32_t)),
                                 .choice = memory(b, choices * sizeof(int32_t)),
                                 .offsets = memory(b, (b->size->experts + 1) * sizeof(int32_t))};
    return &dispatch;
}

static struct route route_of(struct bench *b)
{
    const struct size *s = b->size;
    size_t matrices = s->tasks * s->width * s->experts;
    return (struct route){.batch = s->images,
                          .positions = s->positions,
                          .width = s->width,
                          .experts = s->experts,
                          .top_k = s->top_k,
                          .routers = s->tasks,
                          .x = floats(b, b->values),
                          .routers_value = floats(b, matrices),
                          .noise_value = floats(b, matrices),
                          .router = integers(b, s->images, 0, 1),
                          .training = true,
                          .state = state(b),
                          .epsilon = 0.01f,
                          .dispatch = take_dispatch(b, s->images, s->top_k),
                          .noise_logits = memory(b, s->images * s->experts * sizeof(float)),
                          .drawn = memory(b, s->images * s->experts * sizeof(float)),
                          .counts = memory(b, s->experts * sizeof(int32_t)),
                          .used = memory(b, s->experts * sizeof(int32_t))};
}

/* Samples that were routed, for the operations after it. */
static struct dispatch *routed(struct bench *b)
{
    struct route route = route_of(b);
    must(b->ops->route(b->backend, &route, &error));
    return route.dispatch;
}

PREPARE(grouped_gemm, multiplied(2.0 * (double)slot_rows(b) * (double)s->width * (double)s->bottleneck),
        .kind = GROUPED_ROWS, .groups = s->experts, .rows_per_slot = s->positions, .offsets = routed(b)->offsets,
        .a = operand(b, slot_rows(b), s->width), .b = matrix(b, s->experts * s->bottleneck, s->width),
        .transpose_b = true, .bias = floats(b, s->experts * s->bottleneck), .activation = ACTIVATION_RELU,
        .out = operand(b, slot_rows(b), s->bottleneck))

PREPARE(layer_norm, moved((4 + width_of(b)) * (double)b->values), .x = matrix(b, b->rows, s->width),
        .y = operand(b, b->rows, s->width), .gain = floats(b, s->width), .bias = floats(b, s->width),
        .statistics = floats(b, 2 * b->rows), .epsilon = 1e-5f)

PREPARE(layer_norm_backward, moved((12 + width_of(b)) * (double)b->values), .x = matrix(b, b->rows, s->width),
        .dy = operand(b, b->rows, s->width), .dx = matrix(b, b->rows, s->width), .gain = floats(b, s->width),
        .statistics = floats(b, 2 * b->rows))

static struct cost prepare_activate(struct bench *b, struct activate *o)
{
    struct matrix x = operand(b, b->rows, b->size->hidden);
    *o = (struct activate){.activation = ACTIVATION_QUICK_GELU, .x = x, .out = x};
    return moved(2 * width_of(b) * (double)(b->rows * b->size->hidden));
}

static struct cost prepare_activate_backward(struct bench *b, struct activate_backward *o)
{
    struct matrix dy = matrix(b, b->rows, b->size->hidden);
    *o = (struct activate_backward){
        .activation = ACTIVATION_QUICK_GELU, .x = matrix(b, b->rows, b->size->hidden), .dy = dy, .dx = dy};
    return moved(12.0 * (double)(b->rows * b->size->hidden));
}

static struct cost prepare_dropout(struct bench *b, struct dropout *o)
{
    struct matrix x = matrix(b, b->rows, b->size->width);
    *o = (struct dropout){.x = x, .out = x, .probability = 0.1f, .state = state(b)};
    return moved(8.0 * (double)(b->rows * b->size->width));
}

static struct attention_operands heads(struct bench *b)
{
    const struct size *s = b->size;
    return (struct attention_operands){.batch = s->images,
                                       .positions = s->positions,
                                       .width = s->width,
                                       .heads = s->heads,
                                       .type = b->type,
                                       .qkv = operand(b, b->rows, 3 * s->width).data};
}

PREPARE(attention, multiplied(4.0 * (double)b->values * (double)s->positions), .operands = heads(b),
        .out = operand(b, b->rows, s->width).data)

PREPARE(attention_backward, multiplied(10.0 * (double)b->values * (double)s->positions), .operands = heads(b),
        .out = operand(b, b->rows, s->width).data, .dout = operand(b, b->rows, s->width).data,
        .lse = memory(b, b->rows * s->heads * sizeof(float)), .dqkv = operand(b, b->rows, 3 * s->width).data)

enum { LENGTH = 8 }; /* of prefixes */

static struct prefix_operands prefixes(struct bench *b)
{
    const struct size *s = b->size;
    return (struct prefix_operands){.batch = s->images,
                                    .positions = s->positions,
                                    .width = s->width,
                                    .heads = s->heads,
                                    .length = LENGTH,
                                    .type = b->type,
                                    .router = integers(b, s->images, 0, 1),
                                    .values = floats(b, 2 * LENGTH * s->width),
                                    .qkv = operand(b, b->rows, 3 * s->width).data};
}

PREPARE(prefix_attention, multiplied(4.0 * (double)b->values * LENGTH), .prefix = prefixes(b),
        .out = operand(b, b->rows, s->width).data)

PREPARE(prefix_attention_backward, multiplied(10.0 * (double)b->values * LENGTH), .prefix = prefixes(b), .routers = 1,
        .dout = operand(b, b->rows, s->width).data, .dqkv = operand(b, b->rows, 3 * s->width).data,
        .dvalues = floats(b, 2 * LENGTH * s->width))

static struct gated_prefix_operands gates(struct bench *b)
{
    const struct size *s = b->size;
    return (struct gated_prefix_operands){.batch = s->images,
                                          .positions = s->positions,
                                          .width = s->width,
                                          .heads = s->heads,
                                          .length = LENGTH,
                                          .type = b->type,
                                          .router = integers(b, s->images, 0, 1),
                                          .used = uploaded(b, &(float){(float)s->heads}, sizeof(float)),
                                          .scores = floats(b, b->rows * s->heads * LENGTH),
                                          .bias = floats(b, s->positions * s->heads * LENGTH),
                                          .values = floats(b, LENGTH * s->width),
                                          .residual = floats(b, b->rows * s->width),
                                          .scale = 0.05f};
}

PREPARE(gated_prefix, multiplied(2.0 * (double)b->values * LENGTH), .prefix = gates(b),
        .out = operand(b, b->rows, s->width).data)

PREPARE(gated_prefix_backward, multiplied(4.0 * (double)b->values * LENGTH), .prefix = gates(b),
        .dout = operand(b, b->rows, s->width).data, .dscores = floats(b, b->rows * s->heads * LENGTH),
        .dresidual = floats(b, b->rows * s->width), .dvalues = floats(b, LENGTH * s->width),
        .dbias = floats(b, s->positions * s->heads * LENGTH))

/* Rank-one experts of 16 a task, 11 tasks. */
enum { RANK_ONE_KEPT = 16, RANK_ONE = 11 * RANK_ONE_KEPT };

PREPARE(sparse_softmax, moved(8.0 * (double)(b->rows * RANK_ONE)), .x = matrix(b, b->rows, RANK_ONE),
        .y = matrix(b, b->rows, RANK_ONE), .top_k = RANK_ONE_KEPT, .temperature = 0.1f)

PREPARE(sparse_softmax_backward, moved(12.0 * (double)(b->rows * RANK_ONE)), .y = matrix(b, b->rows, RANK_ONE),
        .dy = matrix(b, b->rows, RANK_ONE), .dx = matrix(b, b->rows, RANK_ONE), .temperature = 0.1f)

static size_t patches_of(const struct size *s)
{
    return s->resolution / s->patch * (s->resolution / s->patch);
}

static struct tensor pixels; /* borrowed by patchify */

static struct cost prepare_patchify(struct bench *b, struct patchify *o)
{
    const struct size *s = b->size;
    size_t n = s->images * s->resolution * s->resolution * 3;
    pixels = drawn_images(b, s->images, s->resolution);
    *o = (struct patchify){.images = &pixels,
                           .patch = s->patch,
                           .per_image = patches_of(s),
                           .mean = {0.5f, 0.5f, 0.5f},
                           .std = {0.25f, 0.25f, 0.25f},
                           .out = floats(b, n)};
    return moved(5.0 * (double)n);
}

PREPARE(assemble_tokens, moved(8.0 * (double)(s->images * (patches_of(s) + 1) * s->width)), .batch = s->images,
        .per_image = patches_of(s), .width = s->width, .patches = floats(b, s->images *patches_of(s) * s->width),
        .class_embedding = floats(b, s->width), .position = floats(b, (patches_of(s) + 1) * s->width),
        .x = floats(b, s->images *(patches_of(s) + 1) * s->width))

PREPARE(assemble_tokens_backward, moved(8.0 * (double)(s->images * (patches_of(s) + 1) * s->width)), .batch = s->images,
        .per_image = patches_of(s), .width = s->width, .dx = floats(b, s->images *(patches_of(s) + 1) * s->width),
        .dpatches = floats(b, s->images *patches_of(s) * s->width), .dclass = floats(b, s->width),
        .dposition = floats(b, (patches_of(s) + 1) * s->width))

PREPARE(embed_tokens, moved(8.0 * (double)(s->prompts * s->prompt_positions * s->width)), .batch = s->prompts,
        .positions = s->prompt_positions, .context = s->context, .width = s->width,
        .tokens = integers(b, s->prompts * s->context, 7, s->vocabulary), .table = floats(b, s->vocabulary * s->width),
        .position = floats(b, s->context * s->width), .x = floats(b, s->prompts * s->prompt_positions * s->width))

PREPARE(embed_tokens_backward, moved(12.0 * (double)(s->prompts * s->prompt_positions * s->width)), .batch = s->prompts,
        .positions = s->prompt_positions, .context = s->context, .width = s->width,
        .tokens = integers(b, s->prompts * s->context, 7, s->vocabulary),
        .dx = floats(b, s->prompts * s->prompt_positions * s->width), .dtable = floats(b, s->vocabulary * s->width),
        .dposition = floats(b, s->context * s->width))

PREPARE(arange, moved(4.0 * (double)b->rows), .count = b->rows, .step = 1, .out = memory(b, b->rows * sizeof(int32_t)))

PREPARE(spread_positions, moved(4.0 * (double)b->rows), .batch = s->images, .positions = s->positions,
        .value = integers(b, s->images, 1, s->images), .out = memory(b, b->rows * sizeof(int32_t)))

PREPARE(gather_rows, moved(8.0 * (double)b->values), .x = matrix(b, b->rows, s->width),
        .out = matrix(b, b->rows, s->width), .rows = integers(b, b->rows, b->rows - 1, b->rows))

PREPARE(scatter_rows, moved(12.0 * (double)b->values), .x = matrix(b, b->rows, s->width),
        .out = matrix(b, b->rows, s->width), .rows = integers(b, b->rows, b->rows - 1, b->rows))

PREPARE(column_sum, moved(4.0 * (double)(b->rows * s->hidden)), .x = matrix(b, b->rows, s->hidden),
        .out = floats(b, s->hidden))

PREPARE(mean_positions, moved(4.0 * (double)b->values), .batch = s->images, .positions = s->positions, .first = 1,
        .width = s->width, .x = floats(b, b->values), .out = floats(b, s->images * s->width))

PREPARE(mean_positions_backward, moved(8.0 * (double)b->values), .batch = s->images, .positions = s->positions,
        .first = 1, .width = s->width, .dout = floats(b, s->images * s->width), .dx = floats(b, b->values))

PREPARE(weighted_sum, moved(12.0 * (double)b->values), .count = 2, .n = b->values,
        .inputs = {floats(b, b->values), floats(b, b->values)}, .weights = {0.5f, 0.5f}, .out = floats(b, b->values))

enum { AVERAGED = 4 };

PREPARE(average_experts, moved(12.0 * (double)b->values), .experts = AVERAGED, .n = b->values / AVERAGED, .share = 0.3f,
        .values = floats(b, b->values))

PREPARE(multiply, moved(12.0 * (double)b->values), .n = b->values, .a = floats(b, b->values), .b = floats(b, b->values),
        .out = floats(b, b->values))

PREPARE(normalize, moved(8.0 * (double)b->values), .x = matrix(b, b->rows, s->width), .y = matrix(b, b->rows, s->width),
        .norms = floats(b, b->rows))

PREPARE(normalize_backward, moved(16.0 * (double)b->values), .y = matrix(b, b->rows, s->width),
        .dy = matrix(b, b->rows, s->width), .dx = matrix(b, b->rows, s->width), .norms = floats(b, b->rows))

PREPARE(cross_entropy, moved(12.0 * (double)(b->rows * s->prompts)), .logits = matrix(b, b->rows, s->prompts),
        .dlogits = matrix(b, b->rows, s->prompts), .labels = integers(b, b->rows, 1, s->prompts), .smoothing = 0.2f,
        .weight = 1, .loss = floats(b, 1))

PREPARE(soft_cross_entropy, moved(16.0 * (double)(b->rows * s->prompts)), .logits = matrix(b, b->rows, s->prompts),
        .targets = matrix(b, b->rows, s->prompts), .dlogits = matrix(b, b->rows, s->prompts), .temperature = 2,
        .weight = 1, .loss = floats(b, 1))

PREPARE(penalty, moved(16.0 * (double)b->values), .n = b->values, .values = floats(b, b->values),
        .anchor = floats(b, b->values), .strength = 1, .gradients = floats(b, b->values), .loss = floats(b, 1))

PREPARE(argmax, moved(4.0 * (double)(b->rows * s->prompts)), .x = matrix(b, b->rows, s->prompts),
        .out = memory(b, b->rows * sizeof(int32_t)))

PREPARE(squared_error, moved(12.0 * (double)b->values), .x = matrix(b, b->rows, s->width),
        .y = matrix(b, b->rows, s->width), .dx = matrix(b, b->rows, s->width), .scale = 1, .errors = floats(b, b->rows))

static struct cost prepare_route(struct bench *b, struct route *o)
{
    *o = route_of(b);
    return multiplied(4.0 * (double)(b->size->images * b->size->width * b->size->experts));
}

PREPARE(route_backward, multiplied(8.0 * (double)(b->slots * s->width)), .batch = s->images, .positions = s->positions,
        .width = s->width, .experts = s->experts, .top_k = s->top_k, .x = floats(b, b->values),
        .routers_value = floats(b, s->tasks * s->width * s->experts),
        .noise_value = floats(b, s->tasks * s->width * s->experts), .router = integers(b, s->images, 0, 1),
        .dispatch = routed(b), .noise_logits = floats(b, s->images * s->experts),
        .drawn = floats(b, s->images * s->experts), .dgates = floats(b, b->slots),
        .drouters = floats(b, s->tasks * s->width * s->experts), .dnoise = floats(b, s->tasks * s->width * s->experts),
        .dx = floats(b, b->values))

PREPARE(balance, moved(20.0 * (double)(s->images * s->experts)), .dispatch = routed(b), .epsilon = 0.01f,
        .weight = 0.01f, .logits = floats(b, s->images * s->experts), .noise_logits = floats(b, s->images * s->experts),
        .drawn = floats(b, s->images * s->experts), .dnoise_logits = floats(b, s->images * s->experts),
        .dgates = floats(b, b->slots), .loss = floats(b, 1))

/* Every token, with the capacity of WideNet. */
PREPARE(route_softmax, multiplied(2.0 * (double)(b->values * s->experts)), .samples = b->rows, .width = s->width,
        .experts = s->experts, .top_k = s->top_k, .routers = 1, .x = floats(b, b->values),
        .routers_value = floats(b, s->width * s->experts), .router = integers(b, b->rows, 0, 1), .training = true,
        .noise_deviation = 1.0f / (float)s->experts, .state = state(b),
        .limit = 6 * s->top_k * b->rows / (5 * s->experts) + 1, .dispatch = take_dispatch(b, b->rows, s->top_k),
        .probabilities = floats(b, b->rows * s->experts), .counts = memory(b, s->experts * sizeof(int32_t)),
        .used = memory(b, s->experts * sizeof(int32_t)))

/* Tokens that were routed. */
static struct dispatch *routed_softmax(struct bench *b)
{
    struct route_softmax route;
    prepare_route_softmax(b, &route);
    must(b->ops->route_softmax(b->backend, &route, &error));
    return route.dispatch;
}

PREPARE(route_softmax_backward, multiplied(4.0 * (double)(b->values * s->experts)), .samples = b->rows,
        .width = s->width, .experts = s->experts, .top_k = s->top_k, .routers = 1, .x = floats(b, b->values),
        .routers_value = floats(b, s->width * s->experts), .router = integers(b, b->rows, 0, 1),
        .dispatch = routed_softmax(b), .probabilities = floats(b, b->rows * s->experts),
        .dgates = floats(b, b->rows * s->top_k), .dprobabilities = floats(b, b->rows * s->experts),
        .drouters = floats(b, s->width * s->experts), .dx = floats(b, b->values))

PREPARE(balance_softmax, moved(8.0 * (double)(b->rows * s->experts)), .kind = BALANCE_WIDENET,
        .dispatch = routed_softmax(b), .probabilities = floats(b, b->rows * s->experts), .weight = 0.01f,
        .dprobabilities = floats(b, b->rows * s->experts), .loss = floats(b, 1))

PREPARE(partition, moved(24.0 * (double)b->rows), .router = integers(b, b->rows, 0, 1), .state = state(b),
        .dispatch = take_dispatch(b, b->rows, 1))

PREPARE(dispatch_gather, moved((4 + width_of(b)) * (double)slot_rows(b) * s->width), .dispatch = routed(b),
        .rows_per_sample = s->positions, .width = s->width, .x_type = TENSOR_F32, .out_type = b->type,
        .x = floats(b, b->values), .out = drawn(b, slot_rows(b) * s->width, b->type))

PREPARE(dispatch_combine, moved(width_of(b) * (double)(slot_rows(b) * s->width) + 8.0 * (double)b->values),
        .dispatch = routed(b), .rows_per_sample = s->positions, .width = s->width, .rows_type = b->type,
        .rows = drawn(b, slot_rows(b) * s->width, b->type), .weights = floats(b, b->slots), .scale = 0.1f,
        .y = floats(b, b->values))

PREPARE(dispatch_dropout, moved(2 * width_of(b) * (double)(slot_rows(b) * s->bottleneck)), .dispatch = routed(b),
        .rows_per_sample = s->positions, .width = s->bottleneck, .probability = 0.1f, .state = state(b),
        .type = b->type, .hidden = drawn(b, slot_rows(b) * s->bottleneck, b->type))

PREPARE(expert_gate_backward, moved(width_of(b) * (double)(slot_rows(b) * (4 * s->bottleneck + s->width))),
        .dispatch = routed(b), .rows_per_sample = s->positions, .hidden = s->bottleneck, .width = s->width,
        .scale = 0.1f, .keep = 0.9f, .activation = ACTIVATION_RELU, .type = b->type,
        .h = drawn(b, slot_rows(b) * s->bottleneck, b->type), .dh = drawn(b, slot_rows(b) * s->bottleneck, b->type),
        .dy = drawn(b, slot_rows(b) * s->width, b->type), .up_bias = floats(b, s->experts * s->width),
        .dgates = floats(b, b->slots), .dup_bias = floats(b, s->experts * s->width))

PREPARE(count_pairs, moved(8.0 * (double)b->slots), .samples = s->images, .experts = s->experts, .top_k = s->top_k,
        .first = integers(b, b->slots, 3, s->experts), .second = integers(b, b->slots, 5, s->experts),
        .counts = memory(b, s->experts * s->experts * sizeof(int32_t)))

/* Experts of the images, with dropout as in training. */
static struct expert_stack_operands stack_of(struct bench *b)
{
    const struct size *s = b->size;
    return (struct expert_stack_operands){.dispatch = routed(b),
                                          .rows_per_sample = s->positions,
                                          .width = s->width,
                                          .hidden = s->bottleneck,
                                          .activation = ACTIVATION_RELU,
                                          .scale = 0.1f,
                                          .first = floats(b, s->experts * s->bottleneck * s->width),
                                          .first_bias = floats(b, s->experts * s->bottleneck),
                                          .second = floats(b, s->experts * s->bottleneck * s->width),
                                          .second_bias = floats(b, s->experts * s->width),
                                          .probability = 0.1f,
                                          .state = state(b),
                                          .arena = &b->arena};
}

PREPARE(experts, multiplied(4.0 * (double)(slot_rows(b) * s->width * s->bottleneck)), .stack = stack_of(b),
        .training = true, .x = floats(b, b->values), .units = drawn(b, slot_rows(b) * s->bottleneck, b->type),
        .y = floats(b, b->values))

PREPARE(experts_backward, multiplied(6.0 * (double)(slot_rows(b) * s->width * s->bottleneck)), .stack = stack_of(b),
        .x = floats(b, b->values), .dy = floats(b, b->values), .units = drawn(b, slot_rows(b) * s->bottleneck, b->type),
        .dunits = drawn(b, slot_rows(b) * s->bottleneck, b->type), .dgates = floats(b, b->slots),
        .dfirst = floats(b, s->experts * s->bottleneck * s->width),
        .dfirst_bias = floats(b, s->experts * s->bottleneck),
        .dsecond = floats(b, s->experts * s->bottleneck * s->width), .dsecond_bias = floats(b, s->experts * s->width))

PREPARE(experts_backward_input, multiplied(2.0 * (double)(slot_rows(b) * s->width * s->bottleneck)),
        .stack = stack_of(b), .dunits = drawn(b, slot_rows(b) * s->bottleneck, b->type), .dx = floats(b, b->values))

PREPARE(find_not_finite, moved(4.0 * (double)b->values), .n = b->values, .values = floats(b, b->values),
        .found = memory(b, sizeof(int32_t)))

PREPARE(skip_step, moved(sizeof(struct step_guard)), .guard = memory(b, sizeof(struct step_guard)), .state = state(b))

/* Of the experts of one block. */
static struct update update_of(struct bench *b)
{
    const struct size *s = b->size;
    size_t each = s->bottleneck * s->width, n = s->experts * each;
    uint64_t *offsets = xmalloc(array_size(s->experts + 1, sizeof *offsets));
    for (size_t e = 0; e <= s->experts; e++)
        offsets[e] = e * each;
    struct update update = {.segments = s->experts,
                            .n = n,
                            .offsets = uploaded(b, offsets, (s->experts + 1) * sizeof *offsets),
                            .flag = integers(b, s->experts, 0, 1),
                            .flags = uploaded(b, &(int32_t){1}, sizeof(int32_t)),
                            .steps = memory(b, s->experts * sizeof(int32_t)),
                            .values = floats(b, n),
                            .gradients = floats(b, n),
                            .first_moment = memory(b, n * sizeof(float)),
                            .second_moment = memory(b, n * sizeof(float)),
                            .state = state(b)};
    free(offsets);
    return update;
}

PREPARE(adamw, moved(32.0 * (double)o->update.n), .update = update_of(b), .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8)

PREPARE(sgd, moved(24.0 * (double)o->update.n), .update = update_of(b), .momentum = 0.9)

/* Values and directions are read once more when the norms are known. */
PREPARE(lamb, moved(44.0 * (double)o->update.n), .update = update_of(b), .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6)

/* --- The list of all --- */

#define CALLS(name)                                                                                                    \
    static struct cost any_##name(struct bench *b, union operation *o)                                                 \
    {                                                                                                                  \
        return prepare_##name(b, &o->name);                                                                            \
    }                                                                                                                  \
    static status call_##name(struct bench *b, const union operation *o)                                               \
    {                                                                                                                  \
        return b->ops->name(b->backend, &o->name, &error);                                                             \
    }
BACKEND_OPERATIONS(CALLS)

const struct entry timed_operations[OPERATIONS] = {
#define ENTRY(name) {#name, any_##name, call_##name},
    BACKEND_OPERATIONS(ENTRY)
#undef ENTRY
};
