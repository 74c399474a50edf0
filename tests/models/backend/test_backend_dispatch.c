/* Noisy top-k, its balance loss, and the way of the samples to their experts and back. */
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"

#include <math.h>
#include <string.h>

#include "core/rng.h"

enum pattern { MIXED, ALL_ON_ONE, SOME_WITHOUT_ROUTER, ALL_WITHOUT_ROUTER, EQUAL_LOGITS };

struct route_case {
    size_t batch, positions, width, experts, top_k, tasks, hidden;
    size_t limit; /* choices of an expert that have a slot when routing is over, 0: all */
    enum pattern pattern;
};

enum { MANY_EXPERTS = 512 /* so many have a way of their own */, MOST_SAMPLES = 300 };

static const struct route_case route_cases[] = {
    {1, 1, 1, 1, 1, 1, 4, 0, MIXED},
    {63, 7, 65, 55, 2, 3, 8, 0, MIXED}, /* many experts, some of them empty */
    {65, 1, 7, 3, 3, 1, 12, 0, MIXED},  /* K = E */
    {7, 5, 63, 6, 2, 2, 64, 0, ALL_ON_ONE},
    {9, 3, 64, 7, 2, 4, 4, 0, SOME_WITHOUT_ROUTER},
    {3, 2, 7, 4, 2, 1, 4, 0, ALL_WITHOUT_ROUTER},
    {7, 2, 65, 9, 3, 1, 4, 0, EQUAL_LOGITS},
    {40, 2, 65, MANY_EXPERTS, 3, 2, 4, 0, SOME_WITHOUT_ROUTER}, /* projected together */
    {3, 2, 7, MANY_EXPERTS, 2, 1, 4, 0, EQUAL_LOGITS},
    {65, 65, 64, 5, 2, 1, 4, 0, MIXED},                       /* slots that leave the caches */
    {MOST_SAMPLES, 1, 9, 6, 2, 2, 4, 0, SOME_WITHOUT_ROUTER}, /* more than a kernel takes at once */
    {70, 3, 16, 9, 3, 2, 8, 10, SOME_WITHOUT_ROUTER},
};

/* A routing problem on both sides, and the reference's solution on the host. */
struct problem {
    const struct route_case *c;
    struct operand x, routers, noise_weights, noise;
    int32_t router[MOST_SAMPLES];
    const int32_t *device_router;
    struct dispatch expected, device;
    double *gates;
};

static int32_t router_of(const struct route_case *c, size_t b)
{
    bool off = c->pattern == ALL_WITHOUT_ROUTER || (c->pattern == SOME_WITHOUT_ROUTER && b % 3 == 1);
    return off ? -1 : (int32_t)(b % c->tasks);
}

static const float *task_matrix(const struct problem *p, const struct operand *stack, size_t b)
{
    return stack->host + (size_t)p->router[b] * p->c->width * p->c->experts;
}

/* A router that sends everything to expert 2 (and then 0), or to all alike. */
static void bend_router(struct device *d, struct problem *p)
{
    size_t e = p->c->experts, n = p->c->tasks * p->c->width * e;
    for (size_t i = 0; i < n; i++) {
        size_t row = i / e % p->c->width;
        p->routers.host[i] = p->c->pattern == EQUAL_LOGITS ? 0.5f
                             : row != 0                    ? 0
                             : i % e == 2                  ? 50
                             : i % e == 0                  ? 10
                                                           : 0;
    }
    for (size_t b = 0; b < p->c->batch; b++)
        p->x.host[b * p->c->positions * p->c->width] = 3.0f;
    p->routers.device = to_device(d, p->routers.host, n * sizeof(float));
    p->x.device = to_device(d, p->x.host, p->c->batch * p->c->positions * p->c->width * sizeof(float));
}

/* z [E] of a sample that has a router */
static void find_logits(const struct problem *p, size_t b, const float *noise, double *z)
{
    const struct route_case *c = p->c;
    reference_router_logits(z, c->width, c->experts, p->x.host + b * c->positions * c->width,
                            task_matrix(p, &p->routers, b), task_matrix(p, &p->noise_weights, b), noise, 0.01);
}

static void solve(struct problem *p, bool training)
{
    const struct route_case *c = p->c;
    double z[MANY_EXPERTS];
    for (size_t b = 0; b < c->batch; b++) {
        for (size_t k = 0; k < c->top_k; k++) {
            p->expected.chosen[b * c->top_k + k] = -1;
            p->gates[b * c->top_k + k] = 0;
        }
        if (p->router[b] < 0)
            continue;
        find_logits(p, b, training ? p->noise.host + b * c->experts : NULL, z);
        reference_choose(p->expected.chosen + b * c->top_k, p->gates + b * c->top_k, z, c->experts, c->top_k);
    }
    reference_sort(&p->expected, 0);
}

static struct problem make_problem(struct device *d, const struct route_case *c)
{
    size_t matrices = c->tasks * c->width * c->experts;
    bool bent = c->pattern == ALL_ON_ONE || c->pattern == EQUAL_LOGITS;
    struct problem p = {.c = c,
                        .x = draw(d, c->batch * c->positions * c->width, 1.0f),
                        .routers = draw(d, matrices, 0.5f),
                        .noise_weights = draw(d, matrices, 0.2f),
                        .noise = draw(d, c->batch * c->experts, bent ? 0.0f : 1.0f),
                        .gates = doubles(d, NULL, c->batch * c->top_k)};
    for (size_t b = 0; b < c->batch; b++)
        p.router[b] = router_of(c, b);
    p.device_router = to_device(d, p.router, c->batch * sizeof *p.router);
    p.expected = take_dispatch(&d->host, c->batch, c->experts, c->top_k);
    p.device = take_dispatch(&d->memory, c->batch, c->experts, c->top_k);
    if (bent)
        bend_router(d, &p);
    return p;
}

static struct route route_of(const struct problem *p, bool training)
{
    const struct route_case *c = p->c;
    return (struct route){.batch = c->batch,
                          .positions = c->positions,
                          .width = c->width,
                          .experts = c->experts,
                          .top_k = c->top_k,
                          .routers = c->tasks,
                          .x = p->x.device,
                          .routers_value = p->routers.device,
                          .noise_value = p->noise_weights.device,
                          .router = p->device_router,
                          .training = training,
                          .noise = p->noise.device,
                          .epsilon = 0.01f,
                          .dispatch = (struct dispatch *)&p->device};
}

static void expect_routed(struct device *d, const struct problem *p)
{
    expect_dispatch(d, &p->device, &p->expected);
    expect_close(d, "gates", p->device.gates, p->gates, p->c->batch * p->c->top_k, 2e-5);
}

DEVICE_TEST_OF(routing_matches_in_training_and_evaluation, route_cases)
{
    struct problem p = make_problem(d, parameters);
    const struct route_case *c = p.c;
    struct route evaluation = route_of(&p, false);
    solve(&p, false);
    must(d->ops->route(d->backend, &evaluation, &error));
    expect_routed(d, &p);

    struct route training = route_of(&p, true);
    struct operand logits = blank(d, c->batch * c->experts), drawn = blank(d, c->batch * c->experts);
    struct tallies tallies = take_tallies(d);
    training.noise_logits = logits.device;
    training.drawn = drawn.device;
    training.counts = tallies.device_counts;
    training.used = tallies.device_used;
    training.frozen = tallies.device_frozen;
    solve(&p, true);
    for (int again = 0; again < 2; again++) {
        must(d->ops->route(d->backend, &training, &error));
        expect_routed(d, &p);
        expect_tallies(d, &tallies, &p.expected, p.gates, training.add_used);
        training.add_used = true;
        tallies.used[c->experts - 1] = 1;
        must(d->ops->upload(d->backend, training.used, tallies.used, sizeof tallies.used, &error));
    }
}

/* With few experts and with many */
static const struct route_case two_route_cases[] = {{7, 3, 65, 9, 2, 2, 4, 0, MIXED},
                                                    {7, 3, 65, MANY_EXPERTS, 2, 2, 4, 0, MIXED}};

/* The last expert's logits are no numbers: comparisons pass it over, but the gates of the others say so. */
DEVICE_TEST_OF(gates_do_not_hide_what_is_no_number, two_route_cases)
{
    struct route_case c = *(const struct route_case *)parameters;
    c.tasks = 1;
    struct problem p = make_problem(d, &c);
    p.routers.host[c.experts - 1] = NAN;
    p.routers.device = to_device(d, p.routers.host, c.width * c.experts * sizeof(float));
    struct route op = route_of(&p, false);
    must(d->ops->route(d->backend, &op, &error));
    const float *gates = from_device(d, p.device.gates, c.batch * c.top_k * sizeof *gates);
    const int32_t *chosen = from_device(d, p.device.chosen, c.batch * c.top_k * sizeof *chosen);
    for (size_t i = 0; i < c.batch * c.top_k; i++) {
        assert_true(isnan(gates[i]));
        assert_true(chosen[i] >= 0 && chosen[i] < (int32_t)c.experts);
    }
}

DEVICE_TEST_OF(noise_is_addressed, two_route_cases)
{
    const struct route_case c = *(const struct route_case *)parameters;
    struct problem p = make_problem(d, &c);
    struct step_state state = {.seed = 0x123456789abcdef0u, .task = 4, .step = 77};
    struct rng rng = rng_make(state.seed, RNG_ROUTER_NOISE, state.task, state.step);
    struct operand logits = blank(d, c.batch * c.experts), drawn = blank(d, c.batch * c.experts);
    struct route op = route_of(&p, true);
    double *expected = doubles(d, NULL, c.batch * c.experts);
    op.noise = NULL;
    op.noise_base = (uint64_t)5 << 40;
    op.state = to_device(d, &state, sizeof state);
    op.noise_logits = logits.device;
    op.drawn = drawn.device;
    op.counts = room(d, c.experts * sizeof(int32_t));
    for (size_t i = 0; i < c.batch * c.experts; i++) {
        p.noise.host[i] = rng_normal(&rng, op.noise_base + i);
        expected[i] = (double)p.noise.host[i];
    }
    solve(&p, true);
    must(d->ops->route(d->backend, &op, &error)); /* used: NULL, not wanted */
    expect_close(d, "drawn noise", drawn.device, expected, c.batch * c.experts, 1e-6);
    expect_routed(d, &p);
}

/* In a batch and by itself: a sample goes the same way, to the last bit. */
DEVICE_TEST_OF(a_sample_does_not_depend_on_its_batch, two_route_cases)
{
    const struct route_case *c = parameters;
    struct problem p = make_problem(d, c);
    size_t last = c->batch - 1, kept = c->experts * sizeof(float);
    struct step_state state = {.seed = 3};
    struct route op = route_of(&p, true);
    op.noise = NULL;
    op.state = to_device(d, &state, sizeof state);
    op.noise_logits = room(d, c->batch * kept);
    op.drawn = room(d, c->batch * kept);
    op.logits = room(d, c->batch * kept);
    op.counts = room(d, c->experts * sizeof(int32_t));
    must(d->ops->route(d->backend, &op, &error));
    const float *among = from_device(d, p.device.gates + last * c->top_k, c->top_k * sizeof *among),
                *logits = from_device(d, op.logits + last * c->experts, kept);
    op.batch = p.device.samples = 1;
    op.x = (const float *)op.x + last * c->positions * c->width;
    op.router += last;
    op.noise_base = last * c->experts;
    must(d->ops->route(d->backend, &op, &error));
    expect_floats(d, "logits of a sample alone", op.logits, logits, c->experts);
    expect_floats(d, "gates of a sample alone", p.device.gates, among, c->top_k);
}

/* A problem that the device routed in training, as the operations back find it. */
static struct problem routed(struct device *d, const struct route_case *c, struct route *op)
{
    struct problem p = make_problem(d, c);
    solve(&p, true);
    *op = route_of(&p, true);
    op->noise_logits = room(d, c->batch * c->experts * sizeof(float));
    op->drawn = room(d, c->batch * c->experts * sizeof(float));
    op->logits = room(d, c->batch * c->experts * sizeof(float));
    op->counts = room(d, c->experts * sizeof(int32_t));
    op->dispatch = &p.device;
    must(d->ops->route(d->backend, op, &error));
    return p;
}

static struct route_backward back_of(const struct problem *p, const struct route *forward, const float *dgates)
{
    return (struct route_backward){.batch = p->c->batch,
                                   .positions = p->c->positions,
                                   .width = p->c->width,
                                   .experts = p->c->experts,
                                   .top_k = p->c->top_k,
                                   .x = p->x.device,
                                   .routers_value = p->routers.device,
                                   .noise_value = p->noise_weights.device,
                                   .router = p->device_router,
                                   .dispatch = &p->device,
                                   .noise_logits = forward->noise_logits,
                                   .drawn = forward->drawn,
                                   .dgates = dgates};
}

struct router_gradients {
    double *routers, *noise, *x;
};

/* dz = g (dg − Σ g dg), through z = x₀R + n (softplus(x₀N) + ε) */
static void reference_route_backward(const struct problem *p, const float *dgates, struct router_gradients *r)
{
    const struct route_case *c = p->c;
    for (size_t i = 0; i < c->batch * c->top_k; i++) {
        size_t b = i / c->top_k, e = (size_t)p->expected.chosen[i];
        if (p->expected.chosen[i] < 0)
            continue;
        const float *x0 = p->x.host + b * c->positions * c->width;
        double mean = 0, spread = 0;
        for (size_t j = b * c->top_k; j < (b + 1) * c->top_k; j++)
            mean += p->gates[j] * (double)dgates[j];
        for (size_t w = 0; w < c->width; w++)
            spread += (double)x0[w] * (double)task_matrix(p, &p->noise_weights, b)[w * c->experts + e];
        double dz = p->gates[i] * ((double)dgates[i] - mean);
        double du = dz * (double)p->noise.host[b * c->experts + e] / (1 + exp(-spread));
        for (size_t w = 0; w < c->width; w++) {
            size_t at = w * c->experts + e, whole = (size_t)p->router[b] * c->width * c->experts + at;
            r->routers[whole] += dz * (double)x0[w];
            r->noise[whole] += du * (double)x0[w];
            r->x[b * c->positions * c->width + w] +=
                dz * (double)task_matrix(p, &p->routers, b)[at] + du * (double)task_matrix(p, &p->noise_weights, b)[at];
        }
    }
}

DEVICE_TEST_OF(routing_gradients_add_up, route_cases)
{
    const struct route_case *c = parameters;
    struct route forward;
    struct problem p = routed(d, c, &forward);
    size_t matrices = c->tasks * c->width * c->experts, n = c->batch * c->positions * c->width;
    struct operand dgates = draw(d, c->batch * c->top_k, 1.0f), drouters = draw(d, matrices, 1.0f),
                   dnoise = draw(d, matrices, 1.0f);
    struct operand dx = draw(d, n, 1.0f),
                   frozen_drouters = {.device = to_device(d, drouters.host, matrices * sizeof(float))};
    struct router_gradients expected = {doubles(d, drouters.host, matrices), doubles(d, dnoise.host, matrices),
                                        doubles(d, dx.host, n)};
    reference_route_backward(&p, dgates.host, &expected);
    struct route_backward op = back_of(&p, &forward, dgates.device);
    op.drouters = drouters.device;
    op.dnoise = dnoise.device;
    op.dx = dx.device;
    must(d->ops->route_backward(d->backend, &op, &error));
    expect_close(d, "gradient of the routers", drouters.device, expected.routers, matrices, 2e-5);
    expect_close(d, "gradient of the noise matrices", dnoise.device, expected.noise, matrices, 2e-5);
    expect_close(d, "gradient of the first position", dx.device, expected.x, n, 2e-5);
    op.dx = NULL;
    op.drouters = frozen_drouters.device;
    must(d->ops->route_backward(d->backend, &op, &error));
    expect_floats(d, "gradient of the lowest block's routers", op.drouters,
                  from_device(d, drouters.device, matrices * sizeof(float)), matrices);
}

/* --- The balance loss, by itself --- */

static double squared_variation(const double *values, size_t n)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return squares / (double)(n - 1) / (mean * mean + 1e-10);
}

/* load [E] += Φ((c − T) / s), T the K-th largest z of the others */
static void add_load(const struct problem *p, size_t b, double *load)
{
    const struct route_case *c = p->c;
    double z[MANY_EXPERTS], clean[MANY_EXPERTS], next = -INFINITY;
    find_logits(p, b, NULL, clean);
    find_logits(p, b, p->noise.host + b * c->experts, z);
    double last = z[p->expected.chosen[(b + 1) * c->top_k - 1]];
    for (size_t e = 0; e < c->experts; e++)
        next = z[e] < last ? fmax(next, z[e]) : next;
    for (size_t e = 0; e < c->experts; e++) {
        double s = (z[e] - clean[e]) / (double)p->noise.host[b * c->experts + e];
        load[e] += 0.5 * erfc(-(clean[e] - (z[e] < last ? last : next)) / s / sqrt(2.0));
    }
}

static double reference_balance(void *context)
{
    struct problem *p = context;
    const struct route_case *c = p->c;
    double importance[MANY_EXPERTS] = {0}, load[MANY_EXPERTS] = {0};
    solve(p, true);
    for (size_t i = 0; i < c->batch * c->top_k; i++)
        if (p->expected.chosen[i] >= 0)
            importance[p->expected.chosen[i]] += p->gates[i];
    for (size_t b = 0; b < c->batch; b++)
        if (p->router[b] >= 0)
            add_load(p, b, load);
    return squared_variation(importance, c->experts) + squared_variation(load, c->experts);
}

static double weighted_balance(void *context)
{
    return 0.7 * reference_balance(context);
}

static const struct route_case balance_cases[] = {
    {1, 1, 3, 4, 1, 1, 4, 0, MIXED},
    {9, 2, 7, 5, 2, 2, 4, 0, SOME_WITHOUT_ROUTER},
    {10, 1, 12, 70, 3, 1, 4, 0, MIXED},
    {8, 1, 4, 3, 3, 1, 4, 0, MIXED}, /* K = E: importance alone */
};

DEVICE_TEST_OF(balance_and_its_gradients_match, balance_cases)
{
    const struct route_case *c = parameters;
    struct route forward;
    struct problem p = routed(d, c, &forward);
    size_t logits = c->batch * c->experts, matrices = c->tasks * c->width * c->experts,
           n = c->batch * c->positions * c->width;
    double variation = reference_balance(&p);
    struct balance op = {.dispatch = &p.device,
                         .epsilon = 0.01f,
                         .weight = 0.7f,
                         .share = 0.25f,
                         .logits = forward.logits,
                         .noise_logits = forward.noise_logits,
                         .drawn = forward.drawn,
                         .dnoise_logits = room(d, logits * sizeof(float)),
                         .dgates = room(d, c->batch * c->top_k * sizeof(float)),
                         .loss = ones(d, 1),
                         .unweighted = ones(d, 1)};
    must(d->ops->balance(d->backend, &op, &error));
    expect_close(d, "loss", op.loss, (const double[]){1 + 0.7 * variation}, 1, 1e-5);
    expect_close(d, "without its weight", op.unweighted, (const double[]){1 + 0.25 * variation}, 1, 1e-5);
    struct route_backward back = back_of(&p, &forward, op.dgates);
    back.dlogits = op.logits;
    back.dnoise_logits = op.dnoise_logits;
    back.drouters = ones(d, matrices);
    back.dnoise = ones(d, matrices);
    back.dx = ones(d, n);
    must(d->ops->route_backward(d->backend, &back, &error));
    expect_slopes(d, "gradient of the routers", back.drouters, p.routers.host, matrices, 1e-4f, weighted_balance, &p);
    expect_slopes(d, "gradient of the noise matrices", back.dnoise, p.noise_weights.host, matrices, 1e-4f,
                  weighted_balance, &p);
    expect_slopes(d, "gradient of the input", back.dx, p.x.host, n, 1e-4f, weighted_balance, &p);
}

DEVICE_TEST(pairs_are_counted)
{
    enum { SAMPLES = 70, EXPERTS = 17, TOP_K = 3 };
    int32_t first[SAMPLES * TOP_K], second[SAMPLES * TOP_K], counts[EXPERTS * EXPERTS], expected[EXPERTS * EXPERTS];
    struct rng rng = rng_make(3, RNG_TEST, 0, 0);
    for (size_t i = 0; i < SAMPLES * TOP_K; i++) { /* different experts of a sample; every ninth sample has none */
        bool none = i / TOP_K % 9 == 4;
        first[i] = none ? -1 : (int32_t)((rng_below(&rng, i / TOP_K, EXPERTS) + 5 * (i % TOP_K)) % EXPERTS);
        second[i] = none ? -1 : (int32_t)((rng_below(&rng, 1000 + i / TOP_K, EXPERTS) + 4 * (i % TOP_K)) % EXPERTS);
    }
    for (int32_t i = 0; i < EXPERTS * EXPERTS; i++)
        counts[i] = expected[i] = i; /* what was there before */
    for (size_t b = 0; b < SAMPLES; b++)
        for (size_t i = 0; i < TOP_K * TOP_K && first[b * TOP_K] >= 0; i++)
            expected[first[b * TOP_K + i / TOP_K] * EXPERTS + second[b * TOP_K + i % TOP_K]]++;
    int32_t *device = to_device(d, counts, sizeof counts);
    must_run(d, count_pairs, .samples = SAMPLES, .experts = EXPERTS, .top_k = TOP_K,
             .first = to_device(d, first, sizeof first), .second = to_device(d, second, sizeof second),
             .counts = device);
    expect_integers(d, "pair counts", device, expected, EXPERTS * EXPERTS);
}

/* Slots that a grid's second axis would not have room for: everybody goes to one expert and back. */
DEVICE_TEST(many_samples_go_and_come)
{
    enum { SAMPLES = 65537, WIDTH = 4, N = SAMPLES * WIDTH };
    int32_t *numbers = arena_take(&d->host, SAMPLES * sizeof *numbers);
    for (int32_t i = 0; i < SAMPLES; i++)
        numbers[i] = i;
    int32_t *device = to_device(d, numbers, SAMPLES * sizeof *numbers);
    struct dispatch dispatch = {.samples = SAMPLES,
                                .experts = 1,
                                .top_k = 1,
                                .chosen = room(d, SAMPLES * sizeof(int32_t)),
                                .gates = room(d, SAMPLES * sizeof(float)),
                                .slot = device,
                                .sample = device,
                                .choice = device,
                                .offsets = to_device(d, (int32_t[]){0, SAMPLES}, 2 * sizeof(int32_t))};
    struct operand x = draw(d, N, 1.0f);
    float *y = room(d, N * sizeof *y);
    double *expected = doubles(d, x.host, N);
    must_run(d, dispatch_combine, .dispatch = &dispatch, .rows_per_sample = 1, .width = WIDTH, .rows = x.device,
             .scale = 1.0f, .y = y);
    expect_close(d, "experts of many samples", y, expected, N, 1e-7);
    must_run(d, dispatch_gather, .dispatch = &dispatch, .rows_per_sample = 1, .width = WIDTH, .x = x.device, .out = y);
    expect_floats(d, "many samples by slot", y, x.host, N);
    struct step_state state = {.seed = 7};
    must_run(d, dispatch_dropout, .dispatch = &dispatch, .rows_per_sample = 1, .width = WIDTH, .probability = 0.5f,
             .state = to_device(d, &state, sizeof state), .hidden = y);
    const float *kept = from_device(d, y, N * sizeof *kept);
    for (size_t i = 0; i < N; i++)
        assert_true(kept[i] == 0 || kept[i] == 2 * x.host[i]);
    assert_true(kept[N - 1] != x.host[N - 1]);
}

DEVICE_TEST(odd_dropout_is_refused)
{
    struct dispatch_dropout op = {.rows_per_sample = 3, .width = 5, .probability = 0.1f};
    must_refuse(d->ops->dispatch_dropout(d->backend, &op, &error), ERROR_ARGUMENT, "15");
}
