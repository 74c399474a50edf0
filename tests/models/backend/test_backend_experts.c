/* Stacked experts, forward and backward, against plain loops: with the kernels that a GPU has for some of the cases, and by slots,
 * which alone calls dispatch_gather, dispatch_combine, dispatch_dropout and expert_gate_backward. */
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"

#include <string.h>

#include "core/rng.h"
#include "models/optimizers/optimizer.h"
#include "models/parameters.h"

enum pattern { MIXED, TWO_HAVE_ALL, SOME_WITHOUT_ROUTER, ALL_WITHOUT_ROUTER };
enum { PARTS = 4, EXPERTS_MOST = 60 };

struct experts_case {
    size_t samples, rows, width, hidden, experts, top_k, limit;
    enum pattern pattern;
    enum activation activation;
    float probability;
    bool tokens, normal; /* normal: the input has the operands' type */
};

static const struct experts_case cases[] = {
    {1, 1, 8, 8, 1, 1, 0, MIXED, ACTIVATION_RELU, 0.0f, false, false},
    {3, 70, 72, 64, 5, 2, 0, MIXED, ACTIVATION_RELU, 0.1f, false, false}, /* two row tiles, the second nearly empty */
    {7, 17, 136, 24, 3, 3, 0, SOME_WITHOUT_ROUTER, ACTIVATION_RELU, 0.5f, false, true},
    {6, 5, 40, 64, 4, 3, 2, MIXED, ACTIVATION_RELU, 0.0f, false, false},  /* choices without a slot */
    {5, 3, 16, 120, 4, 3, 0, MIXED, ACTIVATION_RELU, 0.1f, false, false}, /* a choice's units in two passes */
    {3, 65, 24, 40, 9, 8, 0, MIXED, ACTIVATION_RELU, 0.1f, false, false}, /* and many choices in three */
    {37, 6, 64, 16, 55, 2, 0, TWO_HAVE_ALL, ACTIVATION_RELU, 0.0f, false, false},
    {40, 2, 24, 8, 55, 1, 0, MIXED, ACTIVATION_RELU, 0.25f, false, true},
    {3, 4, 16, 8, 3, 2, 0, ALL_WITHOUT_ROUTER, ACTIVATION_RELU, 0.1f, false, false},
    {4, 5, 7, 5, 3, 2, 0, MIXED, ACTIVATION_RELU, 0.0f, false, false},    /* not by 16 bytes */
    {4, 5, 16, 136, 3, 2, 0, MIXED, ACTIVATION_RELU, 0.1f, false, false}, /* more units than are kept together */
    {90, 1, 24, 8, 4, 2, 0, MIXED, ACTIVATION_RELU, 0.1f, true, false},
    {5, 4, 24, 16, 3, 2, 0, MIXED, ACTIVATION_QUICK_GELU, 0.0f, false, false},
    {9, 3, 7, 12, 55, 2, 1, SOME_WITHOUT_ROUTER, ACTIVATION_GELU, 0.75f, false, true},
    {5, 5, 63, 64, 3, 2, 0, TWO_HAVE_ALL, ACTIVATION_NONE, 0.1f, false, false},
    {65, 65, 64, 4, 5, 2, 0, MIXED, ACTIVATION_RELU, 0.0f, false, false}, /* slots that leave the caches */
};

struct problem {
    const struct experts_case *c;
    struct dispatch host, device;
    struct operand x, dy, parts[PARTS], weights;
    struct expert_stack_operands stack; /* device */
    struct reference_experts reference;
    size_t units;
    int32_t frozen[EXPERTS_MOST];
};

static void choose(struct problem *p)
{
    const struct experts_case *c = p->c;
    struct rng rng = rng_make(11, RNG_TEST, 0, 0);
    for (size_t i = 0; i < c->samples * c->top_k; i++) {
        size_t b = i / c->top_k, k = i % c->top_k;
        bool off = c->pattern == ALL_WITHOUT_ROUTER || (c->pattern == SOME_WITHOUT_ROUTER && b % 3 == 1);
        uint32_t first = c->pattern == TWO_HAVE_ALL ? 3 : (uint32_t)rng_below(&rng, b, c->experts);
        p->host.chosen[i] = off ? -1 : (int32_t)((first + k) % c->experts);
        p->host.gates[i] = off ? 0 : 0.9f / (float)(k + 1);
    }
    reference_sort(&p->host, c->limit);
}

static const struct step_state step = {.seed = 0xfedcba9876543210u, .task = 9, .step = 123456};

static void set_parts(struct expert_stack_operands *stack, float *const parts[PARTS])
{
    stack->first = parts[0];
    stack->first_bias = parts[1];
    stack->second = parts[2];
    stack->second_bias = parts[3];
}

static void make_stack(struct device *d, struct problem *p)
{
    const struct experts_case *c = p->c;
    struct expert_stack_operands *host = &p->reference.stack;
    *host = (struct expert_stack_operands){.dispatch = &p->host,
                                           .rows_per_sample = c->rows,
                                           .width = c->width,
                                           .hidden = c->hidden,
                                           .tokens = c->tokens,
                                           .activation = c->activation,
                                           .scale = 0.5f,
                                           .probability = c->probability,
                                           .base = ((uint64_t)1 << 56) + 40,
                                           .state = &step};
    p->stack = *host;
    p->stack.dispatch = &p->device;
    p->stack.state = to_device(d, &step, sizeof step);
    p->stack.arena = &d->memory;
    set_parts(host, (float *[]){p->parts[0].host, p->parts[1].host, p->parts[2].host, p->parts[3].host});
    set_parts(&p->stack, (float *[]){p->parts[0].device, p->parts[1].device, p->parts[2].device, p->parts[3].device});
    p->reference.weights = p->weights.host;
    p->reference.x = p->x.host;
    p->reference.dy = p->dy.host;
    p->reference.frozen = p->frozen;
}

/* p stays where it is: its stack points into it. Products do not round x, dy and the weights, so no hidden unit near zero changes
 * its sign. */
static void make_problem(struct device *d, struct problem *p, const struct experts_case *c)
{
    size_t matrix = c->experts * c->width * c->hidden, n = c->samples * c->rows * c->width;
    *p = (struct problem){.c = c,
                          .host = take_dispatch(&d->host, c->samples, c->experts, c->top_k),
                          .x = c->normal ? draw_operand(d, n, 1.0f) : draw_rounded(d, n, 1.0f),
                          .dy = draw_rounded(d, n, 1.0f),
                          .weights = draw(d, c->samples * c->top_k, 1.0f),
                          .parts = {draw_rounded(d, matrix, 0.2f), draw(d, c->experts * c->hidden, 0.5f),
                                    draw_rounded(d, matrix, 0.2f), draw(d, c->experts * c->width, 0.5f)},
                          .units = c->samples * c->top_k * c->rows * c->hidden};
    for (size_t e = 0; e < c->experts; e++)
        p->frozen[e] = e % 3 == 2;
    choose(p);
    p->device = dispatch_to_device(d, &p->host);
    make_stack(d, p);
}

static struct experts forward_of(struct device *d, const struct problem *p, float *y)
{
    return (struct experts){.stack = p->stack,
                            .training = true,
                            .x_type = p->x.type,
                            .x = p->x.device,
                            .weights = p->weights.device,
                            .units = blank_operand(d, p->units).device,
                            .y = y};
}

/* Whether there is another way, which is always by slots. */
static bool has_own_kernels(const struct device *d, const struct experts_case *c)
{
    return strcmp(d->ops->name, "cpu") != 0 && experts_go_by_sample(c->activation, c->width, c->hidden);
}

DEVICE_TEST_OF(sums_match, cases)
{
    struct problem p;
    make_problem(d, &p, parameters);
    for (int by_slots = 0; by_slots <= has_own_kernels(d, p.c); by_slots++) {
        struct operand y = draw(d, p.dy.n, 1.0f), plain = draw(d, p.dy.n, 1.0f);
        struct experts op = forward_of(d, &p, y.device);
        reference_experts(y.expected, &p.reference);
        must((by_slots ? experts_by_slots : d->ops->experts)(d->backend, &op, &error));
        expect_operand(d, "sum of the experts", y, rounded(d, 1e-5));

        op.weights = NULL; /* the gates */
        op.training = false;
        op.stack.probability = 0;
        op.y = plain.device;
        struct reference_experts evaluation = p.reference;
        evaluation.weights = p.host.gates;
        evaluation.stack.probability = 0;
        reference_experts(plain.expected, &evaluation);
        must((by_slots ? experts_by_slots : d->ops->experts)(d->backend, &op, &error));
        expect_operand(d, "sum of the experts in evaluation", plain, rounded(d, 1e-5));
    }
}

static struct experts_backward backward_of(struct device *d, const struct problem *p, const struct experts *forward,
                                           const struct operand gradients[PARTS])
{
    return (struct experts_backward){.stack = p->stack,
                                     .x_type = forward->x_type,
                                     .x = p->x.device,
                                     .dy = p->dy.device,
                                     .units = forward->units,
                                     .dunits = blank_operand(d, p->units).device,
                                     .dgates = blank(d, p->weights.n).device,
                                     .dfirst = gradients[0].device,
                                     .dfirst_bias = gradients[1].device,
                                     .dsecond = gradients[2].device,
                                     .dsecond_bias = gradients[3].device,
                                     .frozen = to_device(d, p->frozen, sizeof p->frozen)};
}

DEVICE_TEST_OF(gradients_match_and_spare_the_frozen, cases)
{
    static const char *const names[PARTS] = {"gradient of the first weight", "gradient of the first bias",
                                             "gradient of the second weight", "gradient of the second bias"};
    struct problem p;
    make_problem(d, &p, parameters);
    for (int by_slots = 0; by_slots <= has_own_kernels(d, p.c); by_slots++) {
        struct operand dx = draw(d, p.dy.n, 1.0f), gradients[PARTS];
        double *dgates = doubles(d, NULL, p.weights.n), *dparts[PARTS];
        for (size_t i = 0; i < PARTS; i++) {
            gradients[i] = draw(d, p.parts[i].n, 1.0f);
            dparts[i] = gradients[i].expected;
        }
        struct experts forward = forward_of(d, &p, room(d, p.dy.n * sizeof(float)));
        struct experts_backward op = backward_of(d, &p, &forward, gradients);
        reference_experts_backward(dgates, dx.expected, dparts, &p.reference);
        must((by_slots ? experts_by_slots : d->ops->experts)(d->backend, &forward, &error));
        must((by_slots ? experts_backward_by_slots : d->ops->experts_backward)(d->backend, &op, &error));
        struct experts_backward_input input = {.stack = p.stack, .dunits = op.dunits, .dx = dx.device};
        must((by_slots ? experts_backward_input_by_slots : d->ops->experts_backward_input)(d->backend, &input, &error));
        expect_close(d, "gradient of the gates", op.dgates, dgates, p.weights.n, rounded(d, 1e-5));
        for (size_t i = 0; i < PARTS; i++)
            expect_operand(d, names[i], gradients[i], rounded(d, 1e-5));
        expect_operand(d, "gradient of the input", dx, rounded(d, 1e-5));
    }
}

/* What an operation says of one sample: y, dx and dgates. */
struct answers {
    const float *y, *dx, *dgates;
};

static struct answers answers_of(struct device *d, const struct problem *p, size_t sample)
{
    const struct experts_case *c = p->c;
    size_t n = p->device.samples * c->rows * c->width, values = c->rows * c->width;
    float *y = room(d, n * sizeof *y), *dx = room(d, n * sizeof *dx);
    struct operand gradients[PARTS];
    for (size_t i = 0; i < PARTS; i++)
        gradients[i] = blank(d, p->parts[i].n);
    struct experts forward = forward_of(d, p, y);
    must(d->ops->experts(d->backend, &forward, &error));
    struct experts_backward back = backward_of(d, p, &forward, gradients);
    must(d->ops->experts_backward(d->backend, &back, &error));
    must_run(d, experts_backward_input, .stack = p->stack, .dunits = back.dunits, .dx = dx);
    return (struct answers){from_device(d, y + sample * values, values * sizeof *y),
                            from_device(d, dx + sample * values, values * sizeof *dx),
                            from_device(d, back.dgates + sample * c->top_k, c->top_k * sizeof *back.dgates)};
}

/* By itself a sample has the bits that it has in a batch, in which its random numbers are those after the others'. */
DEVICE_TEST_OF(a_sample_does_not_depend_on_its_batch, cases)
{
    struct problem p, alone;
    make_problem(d, &p, parameters);
    const struct experts_case *c = p.c;
    if (c->limit > 0)
        return;
    size_t last = c->samples - 1, values = c->rows * c->width;
    alone = p;
    alone.host = take_dispatch(&d->host, 1, c->experts, c->top_k);
    memcpy(alone.host.chosen, p.host.chosen + last * c->top_k, c->top_k * sizeof(int32_t));
    memcpy(alone.host.gates, p.host.gates + last * c->top_k, c->top_k * sizeof(float));
    reference_sort(&alone.host, 0);
    alone.device = dispatch_to_device(d, &alone.host);
    alone.stack.dispatch = &alone.device;
    alone.units = c->top_k * c->rows * c->hidden;
    alone.stack.base += last * alone.units;
    alone.x = operand_part(d, p.x, last * values, values);
    alone.dy = operand_part(d, p.dy, last * values, values);
    alone.weights = operand_part(d, p.weights, last * c->top_k, c->top_k);
    struct answers among = answers_of(d, &p, last), own = answers_of(d, &alone, 0);
    assert_memory_equal(own.y, among.y, values * sizeof(float));
    assert_memory_equal(own.dx, among.dx, values * sizeof(float));
    assert_memory_equal(own.dgates, among.dgates, c->top_k * sizeof(float));
}

/* Nor a row on how many its sample has, of which the longest prompt of a batch decides. */
DEVICE_TEST(a_row_does_not_depend_on_its_samples_length)
{
    static const struct experts_case longest = {1, 70, 72, 64, 5, 2, 0, MIXED, ACTIVATION_RELU, 0.0f, false, false};
    struct problem p;
    const float *whole = NULL;
    make_problem(d, &p, &longest);
    for (size_t rows = longest.rows; rows >= 1; rows = rows > 20 ? rows - 9 : rows - 1) {
        struct experts op = forward_of(d, &p, room(d, p.dy.n * sizeof(float)));
        op.training = false;
        op.stack.rows_per_sample = rows;
        must(d->ops->experts(d->backend, &op, &error));
        if (whole == NULL)
            whole = from_device(d, op.y, p.dy.n * sizeof(float));
        if (rows > 1 || strcmp(d->ops->name, "cpu") != 0)
            expect_floats(d, "rows of a shorter sample", op.y, whole, rows * longest.width);
    }
}

static const float *sums_with(struct device *d, struct problem *p, float *const parts[PARTS])
{
    set_parts(&p->stack, parts);
    struct experts op = forward_of(d, p, room(d, p->dy.n * sizeof(float)));
    must(d->ops->experts(d->backend, &op, &error));
    return from_device(d, op.y, p->dy.n * sizeof(float));
}

/* More stacks than a GPU's optimizer writes rounded copies of in one launch. */
enum { STACKS = 50 };

struct training {
    struct parameters *group;
    const struct step_state *state;
    struct update_rule rule;
    const float *sums[STACKS];
};

/* The sums with trained weights are those with the same weights elsewhere, which a backend sees for the first time. */
static void goes_after(struct device *d, struct problem *p, struct training *t, bool changed)
{
    for (size_t stack = 0; stack < STACKS; stack++) {
        float *own[PARTS], *elsewhere[PARTS];
        for (size_t i = 0; i < PARTS; i++) {
            size_t number = stack * PARTS + i, bytes = t->group->list[number].size * sizeof(float);
            own[i] = parameters_weight(t->group, number).value;
            elsewhere[i] = to_device(d, from_device(d, own[i], bytes), bytes);
        }
        const float *sums = sums_with(d, p, own);
        assert_memory_equal(sums, sums_with(d, p, elsewhere), p->dy.n * sizeof(float));
        if (changed)
            assert_memory_not_equal(sums, t->sums[stack], p->dy.n * sizeof(float));
        t->sums[stack] = sums;
    }
}

static status run_step(void *context, struct error *into)
{
    const struct training *t = context;
    return parameters_step(t->group, t->state, &t->rule, into);
}

static const struct optimizer *const optimizers[] = {&optimizer_adamw, &optimizer_sgd, &optimizer_lamb};

DEVICE_TEST_OF(sums_follow_the_weights, optimizers)
{
    static const struct experts_case c = {1, 2, 8, 8, 4, 2, 0, MIXED, ACTIVATION_RELU, 0.0f, false, false};
    const size_t shapes[PARTS][3] = {{4, 8, 8}, {4, 8, 1}, {4, 8, 8}, {4, 8, 1}};
    struct problem p;
    struct step_state state = {.learning_rate = 0.1f};
    struct training t = {.state = to_device(d, &state, sizeof state),
                         .rule = {.optimizer = *(const struct optimizer *const *)parameters,
                                  .beta1 = 0.9,
                                  .beta2 = 0.999,
                                  .epsilon = 1e-8,
                                  .momentum = 0.9}};
    struct recording recording = {0};
    make_problem(d, &p, &c);
    parameters_create(&t.group, d->backend);
    for (size_t i = 0; i < STACKS * PARTS; i++)
        must(parameters_add(t.group, "part", 3, shapes[i % PARTS], c.experts, 0, &(size_t){0}, &error));
    must(parameters_allocate(t.group, &d->memory, PARAMETERS_TRAINED, &error));
    for (size_t i = 0; i < STACKS * PARTS; i++)
        must(parameters_upload(t.group, &t.group->list[i], p.parts[i % PARTS].host, &error));
    goes_after(d, &p, &t, false);
    for (int i = 0; i < 3; i++) {
        size_t n = t.group->values_count;
        must(d->ops->upload(d->backend, t.group->gradients, draw(d, n, 1.0f).host, n * sizeof(float), &error));
        run_again(d, &recording, i == 1, run_step, &t);
        goes_after(d, &p, &t, true);
    }
    d->ops->recording_destroy(d->backend, &recording);
    must(parameters_upload(t.group, &t.group->list[2], p.parts[2].host,
                           &error)); /* as a merge or a restored step does */
    goes_after(d, &p, &t, false);
    parameters_destroy(t.group);
}
