/* Softmax top-k with capacity, its balance losses, and random partitions. */
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"

#include <math.h>
#include <string.h>

#include "core/rng.h"

enum { EXPERTS_MOST = 320 };

enum pattern { MIXED, SOME_WITHOUT_ROUTER, ALL_WITHOUT_ROUTER, EQUAL_LOGITS };

enum { MOST_SAMPLES = 4200 };

struct mixture_case {
    size_t samples, width, experts, top_k, routers, limit;
    enum pattern pattern;
};

static const struct mixture_case cases[] = {
    {1, 1, 1, 1, 1, 0, MIXED},
    {65, 7, 3, 3, 1, 0, MIXED}, /* K = E */
    {63, 33, 6, 2, 2, 9, SOME_WITHOUT_ROUTER},
    {6, 4, 4, 2, 1, 2, ALL_WITHOUT_ROUTER},
    {70, 5, 9, 3, 1, 20, EQUAL_LOGITS},
    {700, 12, 5, 3, 3, 150, MIXED}, /* experts fill up far apart */
    {300, 16, 300, 2, 1, 2, SOME_WITHOUT_ROUTER},
    {MOST_SAMPLES, 3, 40, 2, 2, 250, SOME_WITHOUT_ROUTER}, /* more choices than one block sorts */
};

/* A routing problem on both sides, and the reference's solution on the host. */
struct problem {
    const struct mixture_case *c;
    struct operand x, routers, noise;
    int32_t router[MOST_SAMPLES];
    const int32_t *device_router;
    struct dispatch expected, device;
    double *p, *gates;
};

static void draw_routers(struct device *d, struct problem *p)
{
    const struct mixture_case *c = p->c;
    for (size_t b = 0; b < c->samples; b++) {
        bool off = c->pattern == ALL_WITHOUT_ROUTER || (c->pattern == SOME_WITHOUT_ROUTER && b % 5 == 1);
        p->router[b] = off ? -1 : (int32_t)(b % c->routers);
    }
    p->device_router = to_device(d, p->router, c->samples * sizeof *p->router);
}

static struct problem make_problem(struct device *d, const struct mixture_case *c)
{
    struct problem p = {.c = c,
                        .x = draw(d, c->samples * c->width, 1.0f),
                        .routers =
                            draw(d, c->routers * c->width * c->experts, c->pattern == EQUAL_LOGITS ? 0.0f : 0.5f),
                        .noise = draw(d, c->samples * c->experts, c->pattern == EQUAL_LOGITS ? 0.0f : 1.0f),
                        .p = doubles(d, NULL, c->samples * c->experts),
                        .gates = doubles(d, NULL, c->samples * c->top_k),
                        .expected = take_dispatch(&d->host, c->samples, c->experts, c->top_k),
                        .device = take_dispatch(&d->memory, c->samples, c->experts, c->top_k)};
    draw_routers(d, &p);
    return p;
}

/* p [E] of a sample, with noise of that deviation. */
static void probabilities_of(const struct problem *p, size_t b, double deviation, double *probabilities)
{
    const struct mixture_case *c = p->c;
    double z[EXPERTS_MOST];
    for (size_t e = 0; e < c->experts; e++) {
        z[e] = deviation * (double)p->noise.host[b * c->experts + e];
        for (size_t i = 0; i < c->width; i++)
            z[e] += (double)p->x.host[b * c->width + i] *
                    (double)p->routers.host[((size_t)p->router[b] * c->width + i) * c->experts + e];
    }
    reference_softmax(probabilities, z, c->experts);
}

static void solve(struct problem *p, double deviation)
{
    const struct mixture_case *c = p->c;
    double unused[EXPERTS_MOST];
    for (size_t b = 0; b < c->samples; b++) {
        double *row = p->p + b * c->experts;
        int32_t *chosen = p->expected.chosen + b * c->top_k;
        for (size_t k = 0; k < c->top_k; k++)
            chosen[k] = -1;
        for (size_t e = 0; e < c->experts; e++)
            row[e] = 0;
        if (p->router[b] < 0)
            continue;
        probabilities_of(p, b, deviation, row);
        reference_choose(chosen, unused, row, c->experts, c->top_k);
    }
    reference_sort(&p->expected, c->limit);
    for (size_t i = 0; i < c->samples * c->top_k; i++)
        p->gates[i] = p->expected.slot[i] < 0 ? 0 : p->p[i / c->top_k * c->experts + (size_t)p->expected.chosen[i]];
}

static struct route_softmax route_of(struct device *d, const struct problem *p, bool training)
{
    const struct mixture_case *c = p->c;
    return (struct route_softmax){.samples = c->samples,
                                  .width = c->width,
                                  .experts = c->experts,
                                  .top_k = c->top_k,
                                  .routers = c->routers,
                                  .x = p->x.device,
                                  .routers_value = p->routers.device,
                                  .router = p->device_router,
                                  .training = training,
                                  .noise_deviation = 0.3f,
                                  .noise = p->noise.device,
                                  .limit = c->limit,
                                  .dispatch = (struct dispatch *)&p->device,
                                  .probabilities = blank(d, c->samples * c->experts).device,
                                  .weights = blank(d, c->samples * c->top_k).device,
                                  .counts = room(d, c->experts * sizeof(int32_t))};
}

static struct route_softmax_backward back_of(const struct problem *p, const struct route_softmax *forward,
                                             const float *dgates, float *drouters)
{
    return (struct route_softmax_backward){.samples = p->c->samples,
                                           .width = p->c->width,
                                           .experts = p->c->experts,
                                           .top_k = p->c->top_k,
                                           .routers = p->c->routers,
                                           .x = forward->x,
                                           .routers_value = forward->routers_value,
                                           .router = forward->router,
                                           .dispatch = forward->dispatch,
                                           .probabilities = forward->probabilities,
                                           .dgates = dgates,
                                           .drouters = drouters};
}

/* Of RMoE: they sum to 1 over the kept choices of a sample, or each is 1. */
static void expect_aligned(struct device *d, const struct problem *p, bool each, const float *weights)
{
    size_t top_k = p->c->top_k;
    double *expected = doubles(d, NULL, p->c->samples * top_k);
    for (size_t first = 0; first < p->c->samples * top_k; first += top_k) {
        double total = 0, kept = 0;
        for (size_t i = first; i < first + top_k; i++) {
            total += p->gates[i];
            kept += p->expected.slot[i] >= 0;
        }
        for (size_t i = first; i < first + top_k; i++)
            expected[i] = p->expected.slot[i] < 0 ? 0 : each ? 1 : p->gates[i] + (1 - total) / kept;
        const float *got = from_device(d, weights + first, top_k * sizeof *got);
        for (size_t k = 0; k < top_k && kept == 1; k++)
            assert_true(got[k] == (p->expected.slot[first + k] >= 0 ? 1.0f : 0.0f));
    }
    expect_close(d, "aligned weights", weights, expected, p->c->samples * top_k, 2e-6);
}

static void expect_routed(struct device *d, const struct problem *p, const struct route_softmax *op)
{
    size_t choices = p->c->samples * p->c->top_k;
    expect_dispatch(d, &p->device, &p->expected);
    expect_close(d, "gates", p->device.gates, p->gates, choices, 2e-6);
    expect_close(d, "probabilities", op->probabilities, p->p, p->c->samples * p->c->experts, 2e-6);
    if (op->aligned != ALIGN_NONE)
        expect_aligned(d, p, op->aligned == ALIGN_EACH, op->weights);
    else
        expect_floats(d, "weights", op->weights, from_device(d, p->device.gates, choices * sizeof(float)), choices);
}

DEVICE_TEST_OF(routing_matches_in_training_and_evaluation, cases)
{
    struct problem p = make_problem(d, parameters);
    const struct mixture_case *c = p.c;
    struct route_softmax op = route_of(d, &p, false);
    solve(&p, 0);
    must(d->ops->route_softmax(d->backend, &op, &error));
    expect_routed(d, &p, &op);

    struct tallies tallies = take_tallies(d);
    op.training = true;
    op.counts = tallies.device_counts;
    op.used = tallies.device_used;
    op.frozen = tallies.device_frozen;
    solve(&p, (double)op.noise_deviation);
    for (op.aligned = ALIGN_SHARED; op.aligned <= ALIGN_EACH; op.aligned++) {
        must(d->ops->route_softmax(d->backend, &op, &error));
        expect_routed(d, &p, &op);
        expect_tallies(d, &tallies, &p.expected, p.gates, op.add_used);
        op.add_used = true;
        tallies.used[c->experts - 1] = 1;
        must(d->ops->upload(d->backend, op.used, tallies.used, sizeof tallies.used, &error));
    }
}

DEVICE_TEST(noise_is_addressed)
{
    static const struct mixture_case c = {9, 5, 7, 2, 2, 0, MIXED};
    struct problem p = make_problem(d, &c);
    struct step_state state = {.seed = 0x123456789abcdef0u, .task = 4, .step = 77};
    struct rng rng = rng_make(state.seed, RNG_ROUTER_NOISE, state.task, state.step);
    struct route_softmax op = route_of(d, &p, true);
    op.noise = NULL;
    op.noise_base = (uint64_t)5 << 40;
    op.state = to_device(d, &state, sizeof state);
    for (size_t i = 0; i < c.samples * c.experts; i++)
        p.noise.host[i] = rng_normal(&rng, op.noise_base + i);
    solve(&p, (double)op.noise_deviation);
    must(d->ops->route_softmax(d->backend, &op, &error)); /* used: NULL, not wanted */
    expect_routed(d, &p, &op);
}

/* One router's last expert has logits that are no numbers: the gates of its samples say so, also of choices beyond the
 * limit, and no other sample's. */
DEVICE_TEST(gates_do_not_hide_what_is_no_number)
{
    static const struct mixture_case c = {40, 6, 5, 2, 2, 3, MIXED};
    struct problem p = make_problem(d, &c);
    for (size_t i = 0; i < c.width; i++)
        p.routers.host[(c.width + i + 1) * c.experts - 1] = i % 2 == 0 ? NAN : INFINITY;
    p.routers.device = to_device(d, p.routers.host, 2 * c.width * c.experts * sizeof(float));
    struct route_softmax op = route_of(d, &p, false);
    op.aligned = ALIGN_SHARED;
    must(d->ops->route_softmax(d->backend, &op, &error));
    const float *gates = from_device(d, p.device.gates, c.samples * c.top_k * sizeof *gates),
                *weights = from_device(d, op.weights, c.samples * c.top_k * sizeof *weights);
    const int32_t *chosen = from_device(d, p.device.chosen, c.samples * c.top_k * sizeof *chosen);
    for (size_t i = 0; i < c.samples * c.top_k; i++) {
        assert_true(isnan(gates[i]) == (p.router[i / c.top_k] == 1));
        assert_true(isnan(weights[i]) == isnan(gates[i]));
        assert_true(chosen[i] >= 0 && chosen[i] < (int32_t)c.experts);
    }
}

/* Logits so far apart that all probabilities but one are 0 are still in an order. */
DEVICE_TEST(choices_follow_the_logits)
{
    static const struct mixture_case c = {1, 1, 5, 4, 1, 0, MIXED};
    struct problem p = make_problem(d, &c);
    struct route_softmax op = route_of(d, &p, false);
    op.x = to_device(d, (float[]){1}, sizeof(float));
    op.routers_value = to_device(d, (float[]){-500, -400, 0, -200, -300}, 5 * sizeof(float));
    must(d->ops->route_softmax(d->backend, &op, &error));
    expect_integers(d, "chosen experts", p.device.chosen, (const int32_t[]){2, 3, 4, 1}, 4);
    expect_close(d, "gates", p.device.gates, (const double[]){1, 0, 0, 0}, 4, 1e-30);
}

/* Probabilities that are nearly denormal: the products of their gradients would be, and are left out. */
DEVICE_TEST(tiny_gradients_are_left_out)
{
    static const struct mixture_case c = {1, 1, 5, 1, 1, 0, MIXED};
    struct problem p = make_problem(d, &c);
    struct route_softmax forward = route_of(d, &p, false);
    forward.x = to_device(d, (float[]){1}, sizeof(float));
    forward.routers_value = to_device(d, (float[]){0, -20, -60, -75, -86}, 5 * sizeof(float));
    must(d->ops->route_softmax(d->backend, &forward, &error));
    struct route_softmax_backward op =
        back_of(&p, &forward, to_device(d, (float[]){1}, sizeof(float)), room(d, 5 * sizeof(float)));
    must(d->ops->route_softmax_backward(d->backend, &op, &error));
    const float *got = from_device(d, op.drouters, 5 * sizeof *got);
    const double expected[] = {-exp(-20), -exp(-60)};
    for (size_t e = 0; e < 2; e++)
        assert_true(fabs((double)got[1 + e] / expected[e] - 1) < 1e-5);
    assert_true(got[3] == 0 && got[4] == 0);
}

/* --- Gradients, of Σ dgates · gates of the kept choices + the balance loss --- */

struct gradient_case {
    struct mixture_case shape;
    enum balance_softmax_kind kind;
    float weight; /* of the balance loss; 0: none */
};

static const struct gradient_case gradient_cases[] = {
    {{30, 5, 6, 2, 2, 8, SOME_WITHOUT_ROUTER}, BALANCE_WIDENET, 0.7f},
    {{30, 5, 6, 2, 2, 8, SOME_WITHOUT_ROUTER}, BALANCE_RMOE, 0.7f},
    {{21, 4, 3, 1, 1, 0, MIXED}, BALANCE_RMOE, 0.7f},
    {{21, 4, 3, 3, 1, 0, MIXED}, BALANCE_WIDENET, 0.7f},
    {{25, 6, 4, 2, 3, 0, MIXED}, BALANCE_WIDENET, 0},
    {{5, 3, 4, 2, 1, 2, ALL_WITHOUT_ROUTER}, BALANCE_WIDENET, 0.7f},
    {{5, 3, 4, 2, 1, 2, ALL_WITHOUT_ROUTER}, BALANCE_RMOE, 0.7f},
    {{3, 3, 1, 1, 1, 2, MIXED}, BALANCE_RMOE, 0.7f},
};

/* WideNet's E Σ m P, or RMoE's (deviation / mean of the importance)², from a problem that was solved. */
static double reference_balance(const struct problem *p, enum balance_softmax_kind kind)
{
    const struct mixture_case *c = p->c;
    double sent[EXPERTS_MOST] = {0}, mean[EXPERTS_MOST] = {0}, importance[EXPERTS_MOST] = {0}, samples = 0, loss = 0;
    for (size_t b = 0; b < c->samples; b++)
        samples += p->router[b] >= 0;
    if (samples < 1)
        return 0;
    for (size_t i = 0; i < c->samples * c->top_k; i++)
        if (p->expected.chosen[i] >= 0) {
            sent[p->expected.chosen[i]] += 1 / samples;
            importance[p->expected.chosen[i]] += p->gates[i];
        }
    for (size_t i = 0; i < c->samples * c->experts; i++)
        mean[i % c->experts] += p->p[i] / samples;
    double total = 0, squares = 0, n = (double)c->experts;
    for (size_t e = 0; e < c->experts; e++) {
        loss += n * sent[e] * mean[e];
        total += importance[e];
        squares += importance[e] * importance[e];
    }
    return kind == BALANCE_WIDENET ? loss : (squares / n - total * total / n / n) / (total * total / n / n);
}

struct loss {
    struct problem *p;
    const struct gradient_case *g;
    const float *dgates;
};

static double reference_loss(void *context)
{
    struct loss *l = context;
    solve(l->p, (double)0.3f);
    double loss = (double)l->g->weight * reference_balance(l->p, l->g->kind);
    for (size_t i = 0; i < l->p->c->samples * l->p->c->top_k; i++)
        loss += (double)l->dgates[i] * l->p->gates[i];
    return loss;
}

DEVICE_TEST_OF(losses_and_gradients_match, gradient_cases)
{
    const struct gradient_case *g = parameters;
    const struct mixture_case *c = &g->shape;
    struct problem p = make_problem(d, c);
    size_t matrices = c->routers * c->width * c->experts, n = c->samples * c->width;
    struct operand dgates = draw(d, c->samples * c->top_k, 1.0f);
    struct route_softmax route = route_of(d, &p, true);
    must(d->ops->route_softmax(d->backend, &route, &error));
    solve(&p, (double)route.noise_deviation);
    expect_routed(d, &p, &route);
    float *dprobabilities = blank(d, c->samples * c->experts).device, *loss = ones(d, 1), *unweighted = ones(d, 1);
    if (g->weight > 0) {
        double expected = reference_balance(&p, g->kind);
        must_run(d, balance_softmax, .kind = g->kind, .dispatch = &p.device, .probabilities = route.probabilities,
                 .weight = g->weight, .share = 0.25f, .dprobabilities = dprobabilities, .loss = loss,
                 .unweighted = unweighted);
        expect_close(d, "balance loss", loss, (const double[]){1 + (double)g->weight * expected}, 1, 1e-5);
        expect_close(d, "without its weight", unweighted, (const double[]){1 + 0.25 * expected}, 1, 1e-5);
    }
    struct route_softmax_backward op = back_of(&p, &route, dgates.device, ones(d, matrices));
    op.dprobabilities = g->weight > 0 ? dprobabilities : NULL;
    op.dx = ones(d, n);
    must(d->ops->route_softmax_backward(d->backend, &op, &error));
    struct loss operands = {&p, g, dgates.host};
    expect_slopes(d, "gradient of the routers", op.drouters, p.routers.host, matrices, 1e-3f, reference_loss,
                  &operands);
    expect_slopes(d, "gradient of the input", op.dx, p.x.host, n, 1e-3f, reference_loss, &operands);
    const float *got = from_device(d, op.drouters, matrices * sizeof *got);
    op.drouters = ones(d, matrices);
    op.dx = NULL;
    must(d->ops->route_softmax_backward(d->backend, &op, &error));
    expect_floats(d, "gradient of the lowest block's routers", op.drouters, got, matrices);
}

/* The sums of many samples, on experts that are more than the threads of a block. */
DEVICE_TEST_OF(losses_of_many_samples_match, cases)
{
    const struct mixture_case *c = parameters;
    struct problem p = make_problem(d, c);
    struct route_softmax route = route_of(d, &p, false);
    solve(&p, 0);
    must(d->ops->route_softmax(d->backend, &route, &error));
    for (int kind = BALANCE_WIDENET; kind <= BALANCE_RMOE; kind++) {
        float *loss = room(d, sizeof *loss);
        must_run(d, balance_softmax, .kind = (enum balance_softmax_kind)kind, .dispatch = &p.device,
                 .probabilities = route.probabilities, .weight = 2,
                 .dprobabilities = blank(d, c->samples * c->experts).device, .loss = loss);
        expect_close(d, "balance loss", loss,
                     (const double[]){2 * reference_balance(&p, (enum balance_softmax_kind)kind)}, 1, 1e-5);
    }
}

/* --- Partitions --- */

struct partition_case {
    size_t samples, experts;
    enum pattern pattern;
};

static const struct partition_case partition_cases[] = {
    {1, 1, MIXED},
    {3, 5, MIXED}, /* some experts get none */
    {24, 4, MIXED},
    {2003, 7, SOME_WITHOUT_ROUTER},
    {9, 2, ALL_WITHOUT_ROUTER},
};

/* By definition: the group of each sample's place in the order of the numbers drawn. */
static void reference_partition(struct dispatch *want, const int32_t *router, const struct rng *rng, uint64_t base)
{
    size_t n = 0;
    for (size_t b = 0; b < want->samples; b++)
        n += router[b] >= 0;
    size_t larger = n % want->experts, each = n / want->experts;
    for (size_t b = 0; b < want->samples; b++) {
        size_t before = 0, e = 0, end = each + (larger > 0);
        uint32_t own = rng_uint32(rng, base + b);
        for (size_t other = 0; other < want->samples; other++) {
            uint32_t number = rng_uint32(rng, base + other);
            before += router[other] >= 0 && (number < own || (number == own && other < b));
        }
        while (router[b] >= 0 && before >= end) {
            e++;
            end += each + (e < larger);
        }
        want->chosen[b] = router[b] >= 0 ? (int32_t)e : -1;
    }
    reference_sort(want, 0);
}

DEVICE_TEST_OF(partitions_are_equal_and_addressed, partition_cases)
{
    const struct partition_case *p = parameters;
    struct mixture_case c = {p->samples, 1, p->experts, 1, 1, 0, p->pattern};
    struct dispatch want = take_dispatch(&d->host, c.samples, c.experts, c.top_k),
                    got = take_dispatch(&d->memory, c.samples, c.experts, c.top_k);
    /* The last of group 4 and the first of group 5 of the 2003 samples have equal numbers. */
    struct step_state state = {.seed = 215869, .task = 3, .step = 12345};
    struct rng rng = rng_make(state.seed, RNG_TOKENS, state.task, state.step);
    int32_t *router = arena_take(&d->host, c.samples * sizeof *router);
    double *gates = doubles(d, NULL, c.samples);
    for (size_t b = 0; b < c.samples; b++) {
        router[b] = c.pattern == ALL_WITHOUT_ROUTER || (c.pattern == SOME_WITHOUT_ROUTER && b % 5 == 1) ? -1 : 2;
        gates[b] = router[b] >= 0;
    }
    struct tallies tallies = take_tallies(d);
    struct partition op = {.router = to_device(d, router, c.samples * sizeof *router),
                           .base = ((uint64_t)1 << 41) - 5,
                           .state = to_device(d, &state, sizeof state),
                           .dispatch = &got,
                           .counts = tallies.device_counts,
                           .used = tallies.device_used,
                           .frozen = tallies.device_frozen};
    reference_partition(&want, router, &rng, op.base);
    must(d->ops->partition(d->backend, &op, &error));
    expect_dispatch(d, &got, &want);
    expect_close(d, "gates", got.gates, gates, c.samples, 0);
    expect_tallies(d, &tallies, &want, gates, false);

    for (size_t b = 0; b < c.samples; b++)
        want.chosen[b] = b % 3 == 0 ? 0 : (int32_t)c.experts - 1;
    op.owner = to_device(d, want.chosen, c.samples * sizeof *want.chosen);
    for (size_t b = 0; b < c.samples; b++)
        want.chosen[b] = router[b] >= 0 ? want.chosen[b] : -1;
    reference_sort(&want, 0);
    op.counts = op.used = NULL;
    must(d->ops->partition(d->backend, &op, &error));
    expect_dispatch(d, &got, &want);
}

/* --- What a recorded step does again --- */

struct step {
    struct device *d;
    struct route_softmax route;
    struct balance_softmax balance;
    struct route_softmax_backward back;
    struct partition partition;
};

static status run_step(void *context, struct error *failure)
{
    const struct step *s = context;
    TRY(s->d->ops->route_softmax(s->d->backend, &s->route, failure));
    TRY(s->d->ops->balance_softmax(s->d->backend, &s->balance, failure));
    TRY(s->d->ops->route_softmax_backward(s->d->backend, &s->back, failure));
    return s->d->ops->partition(s->d->backend, &s->partition, failure);
}

static struct step make_step(struct device *d, const struct problem *p, struct dispatch *parts,
                             const struct step_state *state)
{
    const struct mixture_case *c = p->c;
    struct step s = {.d = d, .route = route_of(d, p, true)};
    s.route.noise = NULL;
    s.route.state = state;
    s.balance = (struct balance_softmax){.kind = BALANCE_WIDENET,
                                         .dispatch = s.route.dispatch,
                                         .probabilities = s.route.probabilities,
                                         .weight = 1,
                                         .dprobabilities = blank(d, c->samples * c->experts).device,
                                         .loss = room(d, sizeof(float))};
    s.back = back_of(p, &s.route, draw(d, c->samples * c->top_k, 1.0f).device,
                     room(d, c->routers * c->width * c->experts * sizeof(float)));
    s.back.dprobabilities = s.balance.dprobabilities;
    *parts = take_dispatch(&d->memory, c->samples, c->experts, 1);
    s.partition = (struct partition){.router = p->device_router, .state = state, .dispatch = parts};
    return s;
}

/* The second step is replayed with the first one's operands and the state of its own. */
DEVICE_TEST(recorded_steps_draw_anew)
{
    static const struct mixture_case c = {70, 8, 5, 2, 2, 25, SOME_WITHOUT_ROUTER};
    struct problem p = make_problem(d, &c);
    struct dispatch parts;
    struct step_state *state = room(d, sizeof *state);
    struct step step = make_step(d, &p, &parts, state);
    size_t matrices = c.routers * c.width * c.experts;
    const int32_t *owners[2];
    const float *gradients[2];
    struct recording recording = {0};
    for (uint32_t i = 0; i < 4; i++) {
        struct step_state now = {.seed = 5, .step = i % 2};
        must(d->ops->upload(d->backend, state, &now, sizeof now, &error));
        must(d->ops->zero(d->backend, step.back.drouters, matrices * sizeof(float), &error));
        run_again(d, &recording, i == 2, run_step, &step);
        if (i < 2) {
            owners[i] = from_device(d, parts.chosen, c.samples * sizeof **owners);
            gradients[i] = from_device(d, step.back.drouters, matrices * sizeof **gradients);
        }
        expect_integers(d, "owners", parts.chosen, owners[i % 2], c.samples);
        expect_floats(d, "gradient of the routers", step.back.drouters, gradients[i % 2], matrices);
    }
    assert_memory_not_equal(owners[0], owners[1], c.samples * sizeof **owners);
    assert_memory_not_equal(gradients[0], gradients[1], matrices * sizeof **gradients);
    assert_true((recording.owner != NULL) == (strcmp(d->ops->name, "cpu") != 0));
    d->ops->recording_destroy(d->backend, &recording);
}
