/* Routing by noisy top-k and by softmax top-k with capacity, their balance losses, and what a recorded step of it does again. */
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"

#include <math.h>
#include <string.h>

enum pattern { MIXED, ALL_ON_ONE, SOME_WITHOUT_ROUTER, ALL_WITHOUT_ROUTER, EQUAL_LOGITS };

struct routing_case {
    size_t samples, positions, width, experts, top_k,
        routers;  /* positions: of noisy top-k, which looks at the first one */
    size_t limit; /* of softmax top-k */
    enum pattern pattern;
};

enum { MANY_EXPERTS = 512 /* so many have a way of their own */, MOST_SAMPLES = 4200 };

static const struct routing_case cases[] = {
    {1, 1, 1, 1, 1, 1, 0, MIXED},
    {65, 1, 7, 3, 3, 1, 0, MIXED},   /* K = E */
    {63, 7, 65, 55, 2, 3, 4, MIXED}, /* many experts, some of them empty */
    {7, 5, 63, 6, 2, 2, 0, ALL_ON_ONE},
    {63, 3, 33, 6, 2, 2, 9, SOME_WITHOUT_ROUTER},
    {6, 2, 7, 4, 2, 1, 2, ALL_WITHOUT_ROUTER},
    {70, 2, 65, 9, 3, 1, 20, EQUAL_LOGITS},
    {700, 1, 12, 5, 3, 3, 150, MIXED},                       /* experts fill up far apart */
    {40, 2, 33, MANY_EXPERTS, 3, 2, 1, SOME_WITHOUT_ROUTER}, /* projected together */
    {300, 1, 16, 300, 2, 1, 2, SOME_WITHOUT_ROUTER},         /* more than a kernel takes at once */
    {3, 2, 7, MANY_EXPERTS, 2, 1, 0, EQUAL_LOGITS},
    {MOST_SAMPLES, 1, 3, 40, 2, 2, 200, SOME_WITHOUT_ROUTER}, /* more choices than one block sorts */
};

/* A routing problem on both sides, and the reference's solution on the host. */
struct problem {
    struct routing_case c;
    bool softmax, training;
    struct operand x, routers, noise_weights, noise, gates, weights;
    struct operand logits; /* [B, E] z, or the probabilities of softmax top-k */
    struct operand noise_logits, drawn;
    int32_t router[MOST_SAMPLES];
    const int32_t *device_router;
    const struct step_state *state; /* of noise that is drawn; NULL: it is given */
    uint64_t noise_base;
    enum alignment aligned;
    struct tallies tallies;
    int32_t *used; /* NULL: not wanted */
    bool add_used;
    struct dispatch expected, device;
};

/* Routers that send everything to expert 2 (and then 0), or to all alike, by the first value of each sample. */
static void bend_routers(struct device *d, struct problem *p)
{
    const struct routing_case *c = &p->c;
    float scale = p->softmax ? 0.2f : 1; /* of noisy top-k a gate is too small for a float */
    for (size_t i = 0; i < p->routers.n; i++) {
        size_t e = i % c->experts;
        bool first = i / c->experts % c->width == 0;
        p->routers.host[i] = scale * (!first ? 0 : c->pattern == EQUAL_LOGITS ? 0.5f : e == 2 ? 50 : e == 0 ? 10 : 0);
    }
    for (size_t i = 0; i < p->x.n; i += c->width)
        p->x.host[i] = 3;
    operand_renew(d, &p->routers);
    operand_renew(d, &p->x);
}

static struct problem make_problem(struct device *d, const struct routing_case *c, bool softmax)
{
    size_t matrices = c->routers * c->width * c->experts, logits = c->samples * c->experts,
           choices = c->samples * c->top_k;
    bool bent = c->pattern == ALL_ON_ONE || c->pattern == EQUAL_LOGITS;
    struct problem p = {.c = *c,
                        .softmax = softmax,
                        .routers = draw(d, matrices, 0.5f),
                        .noise_weights = draw(d, matrices, 0.2f),
                        .noise = draw(d, logits, bent ? 0.0f : 1.0f),
                        .gates = blank(d, choices),
                        .weights = blank(d, choices),
                        .logits = blank(d, logits),
                        .noise_logits = blank(d, logits),
                        .drawn = blank(d, logits),
                        .tallies = take_tallies(d),
                        .expected = take_dispatch(&d->host, c->samples, c->experts, c->top_k),
                        .device = take_dispatch(&d->memory, c->samples, c->experts, c->top_k)};
    p.c.positions = softmax ? 1 : c->positions;
    p.c.limit = softmax ? c->limit : 0;
    p.x = draw(d, c->samples * p.c.positions * c->width, 1.0f);
    p.device.gates = p.gates.device;
    for (size_t b = 0; b < c->samples; b++) {
        bool off = c->pattern == ALL_WITHOUT_ROUTER || (c->pattern == SOME_WITHOUT_ROUTER && b % 5 == 1);
        p.router[b] = off ? -1 : (int32_t)(b % c->routers);
    }
    p.device_router = to_device(d, p.router, c->samples * sizeof *p.router);
    if (bent)
        bend_routers(d, &p);
    return p;
}

static float noise_deviation(const struct problem *p)
{
    return p->softmax ? 0.3f : 1;
}

static void route(struct device *d, const struct problem *p)
{
    const struct routing_case *c = &p->c;
    const float *noise = p->state == NULL ? p->noise.device : NULL;
    struct dispatch device = p->device;
    if (p->softmax)
        must_run(d, route_softmax, .samples = c->samples, .width = c->width, .experts = c->experts, .top_k = c->top_k,
                 .routers = c->routers, .x = p->x.device, .routers_value = p->routers.device,
                 .router = p->device_router, .training = p->training, .noise_deviation = noise_deviation(p),
                 .noise = noise, .noise_base = p->noise_base, .state = p->state, .limit = c->limit, .dispatch = &device,
                 .probabilities = p->logits.device, .aligned = p->aligned, .weights = p->weights.device,
                 .counts = p->tallies.device_counts, .used = p->used, .add_used = p->add_used,
                 .frozen = p->tallies.device_frozen);
    else
        must_run(d, route, .batch = c->samples, .positions = c->positions, .width = c->width, .experts = c->experts,
                 .top_k = c->top_k, .routers = c->routers, .x = p->x.device, .routers_value = p->routers.device,
                 .noise_value = p->noise_weights.device, .router = p->device_router, .training = p->training,
                 .noise = noise, .noise_base = p->noise_base, .state = p->state, .epsilon = 0.01f, .dispatch = &device,
                 .noise_logits = p->noise_logits.device, .drawn = p->drawn.device, .logits = p->logits.device,
                 .counts = p->tallies.device_counts, .used = p->used, .add_used = p->add_used,
                 .frozen = p->tallies.device_frozen);
}

/* Further gradients are of the logits and of x₀N, or of the probabilities; NULL: none. */
static void route_back(struct device *d, const struct problem *p, const float *dgates, const float *dlogits,
                       const float *dnoise_logits, struct operand drouters, struct operand dnoise, struct operand dx)
{
    const struct routing_case *c = &p->c;
    if (p->softmax)
        must_run(d, route_softmax_backward, .samples = c->samples, .width = c->width, .experts = c->experts,
                 .top_k = c->top_k, .routers = c->routers, .x = p->x.device, .routers_value = p->routers.device,
                 .router = p->device_router, .dispatch = &p->device, .probabilities = p->logits.device,
                 .dgates = dgates, .dprobabilities = dlogits, .drouters = drouters.device, .dx = dx.device);
    else
        must_run(d, route_backward, .batch = c->samples, .positions = c->positions, .width = c->width,
                 .experts = c->experts, .top_k = c->top_k, .x = p->x.device, .routers_value = p->routers.device,
                 .noise_value = p->noise_weights.device, .router = p->device_router, .dispatch = &p->device,
                 .noise_logits = p->noise_logits.device, .drawn = p->drawn.device, .dgates = dgates, .dlogits = dlogits,
                 .dnoise_logits = dnoise_logits, .drouters = drouters.device, .dnoise = dnoise.device, .dx = dx.device);
}

/* z [E] of a sample that has a router, with so much of the noise. */
static void find_logits(const struct problem *p, size_t b, double share, double *z)
{
    const struct routing_case *c = &p->c;
    const float *x = p->x.host + b * c->positions * c->width;
    for (size_t e = 0; e < c->experts; e++) {
        double spread = 0;
        z[e] = 0;
        for (size_t i = 0; i < c->width; i++) {
            size_t at = ((size_t)p->router[b] * c->width + i) * c->experts + e;
            z[e] += (double)x[i] * (double)p->routers.host[at];
            spread += p->softmax ? 0 : (double)x[i] * (double)p->noise_weights.host[at];
        }
        z[e] +=
            share * (double)p->noise.host[b * c->experts + e] * (p->softmax ? 1 : log1p(exp(spread)) + (double)0.01f);
    }
}

static void solve(struct problem *p, double share)
{
    const struct routing_case *c = &p->c;
    double z[MANY_EXPERTS];
    for (size_t b = 0; b < c->samples; b++) {
        int32_t *chosen = p->expected.chosen + b * c->top_k;
        double *gates = p->gates.expected + b * c->top_k, *probabilities = p->logits.expected + b * c->experts;
        for (size_t k = 0; k < c->top_k; k++)
            chosen[k] = -1;
        if (p->router[b] < 0)
            continue;
        find_logits(p, b, share, z);
        reference_choose(chosen, gates, z, c->experts, c->top_k);
        if (p->softmax)
            reference_softmax(probabilities, z, c->experts);
        for (size_t k = 0; k < c->top_k && p->softmax; k++)
            gates[k] = probabilities[chosen[k]];
    }
    reference_sort(&p->expected, c->limit);
    for (size_t i = 0; i < p->gates.n; i++)
        p->gates.expected[i] = p->expected.slot[i] < 0 ? 0 : p->gates.expected[i];
}

/* Of RMoE: they sum to 1 over the kept choices of a sample, or each is 1. */
static void expect_aligned(struct device *d, const struct problem *p)
{
    const float *got = operand_values(d, p->weights);
    const double *gates = p->gates.expected;
    for (size_t first = 0; first < p->gates.n; first += p->c.top_k) {
        double total = 0, kept = 0;
        for (size_t i = first; i < first + p->c.top_k; i++) {
            total += gates[i];
            kept += p->expected.slot[i] >= 0;
        }
        for (size_t i = first; i < first + p->c.top_k; i++) {
            bool none = p->expected.slot[i] < 0, each = p->aligned == ALIGN_EACH;
            p->weights.expected[i] = none ? 0 : each ? 1 : gates[i] + (1 - total) / kept;
            if (kept == 1)
                assert_true(got[i] == (none ? 0.0f : 1.0f));
        }
    }
    expect_operand(d, "aligned weights", p->weights, 2e-6);
}

static void expect_routed(struct device *d, const struct problem *p)
{
    expect_dispatch(d, &p->device, &p->expected);
    expect_operand(d, "gates", p->gates, p->softmax ? 2e-6 : 2e-5);
    if (!p->softmax)
        return;
    expect_operand(d, "probabilities", p->logits, 2e-6);
    if (p->aligned == ALIGN_NONE)
        expect_equal_bits(d, "weights", p->weights, p->gates);
    else
        expect_aligned(d, p);
}

DEVICE_TEST_OF(routing_matches_in_training_and_evaluation, cases)
{
    for (int softmax = 0; softmax < 2; softmax++) {
        struct problem p = make_problem(d, parameters, softmax);
        solve(&p, 0);
        route(d, &p);
        expect_routed(d, &p);

        p.training = true;
        p.used = p.tallies.device_used;
        solve(&p, (double)noise_deviation(&p));
        for (p.aligned = ALIGN_SHARED; p.aligned <= ALIGN_EACH; p.aligned++) {
            route(d, &p);
            expect_routed(d, &p);
            expect_tallies(d, &p.tallies, &p.expected, p.gates.expected, p.add_used);
            p.add_used = true;
            p.tallies.used[p.c.experts - 1] = 1;
            must(d->ops->upload(d->backend, p.used, p.tallies.used, sizeof p.tallies.used, &error));
        }
    }
}

/* With few experts and with many */
static const struct routing_case two_cases[] = {{17, 3, 65, 9, 2, 2, 3, MIXED},
                                                {17, 3, 65, MANY_EXPERTS, 2, 2, 3, MIXED}};

/* One router's last expert has logits that are no numbers: comparisons pass it over, but the gates of its samples say so, also
 * of choices beyond the limit, and no other sample's. */
DEVICE_TEST_OF(gates_do_not_hide_what_is_no_number, two_cases)
{
    for (int softmax = 0; softmax < 2; softmax++) {
        struct problem p = make_problem(d, parameters, softmax);
        for (size_t i = 0; i < p.c.width; i++)
            p.routers.host[(p.c.width + i + 1) * p.c.experts - 1] = i % 2 == 0 ? NAN : INFINITY;
        operand_renew(d, &p.routers);
        p.aligned = ALIGN_SHARED;
        route(d, &p);
        const float *gates = operand_values(d, p.gates), *weights = operand_values(d, p.weights);
        const int32_t *chosen = from_device(d, p.device.chosen, p.gates.n * sizeof *chosen);
        for (size_t i = 0; i < p.gates.n; i++) {
            assert_true(isnan(gates[i]) == (p.router[i / p.c.top_k] == 1));
            assert_true(!softmax || isnan(weights[i]) == isnan(gates[i]));
            assert_true(chosen[i] >= 0 && chosen[i] < (int32_t)p.c.experts);
        }
    }
}

DEVICE_TEST_OF(noise_is_addressed, two_cases)
{
    for (int softmax = 0; softmax < 2; softmax++) {
        struct problem p = make_problem(d, parameters, softmax);
        struct step_state state = {.seed = 0x123456789abcdef0u, .task = 4, .step = 77};
        struct rng rng = rng_make(state.seed, RNG_ROUTER_NOISE, state.task, state.step);
        p.training = true;
        p.noise_base = (uint64_t)5 << 40;
        p.state = to_device(d, &state, sizeof state);
        for (size_t i = 0; i < p.noise.n; i++)
            p.drawn.expected[i] = (double)(p.noise.host[i] = rng_normal(&rng, p.noise_base + i));
        solve(&p, (double)noise_deviation(&p));
        route(d, &p);
        if (!softmax)
            expect_operand(d, "drawn noise", p.drawn, 1e-6);
        expect_routed(d, &p);
    }
}

/* In a batch and by itself: a sample goes the same way, to the last bit. */
DEVICE_TEST_OF(a_sample_does_not_depend_on_its_batch, two_cases)
{
    struct problem p = make_problem(d, parameters, false);
    struct routing_case *c = &p.c;
    size_t last = c->samples - 1;
    p.training = true;
    p.state = to_device(d, &(struct step_state){.seed = 3}, sizeof *p.state);
    route(d, &p);
    const float *gates = operand_values(d, p.gates) + last * c->top_k,
                *logits = operand_values(d, p.logits) + last * c->experts;
    c->samples = p.device.samples = 1;
    p.x.device += last * c->positions * c->width;
    p.device_router += last;
    p.noise_base = last * c->experts;
    route(d, &p);
    expect_floats(d, "logits of a sample alone", p.logits.device, logits, c->experts);
    expect_floats(d, "gates of a sample alone", p.gates.device, gates, c->top_k);
}

/* One sample whose only value is 1, so that these are its logits. */
static struct problem with_logits(struct device *d, size_t top_k, const float logits[5])
{
    struct problem p = make_problem(d, &(struct routing_case){1, 1, 1, 5, top_k, 1, 0, MIXED}, true);
    p.x.device = ones(d, 1);
    p.routers.device = to_device(d, logits, 5 * sizeof *logits);
    route(d, &p);
    return p;
}

/* Logits so far apart that all probabilities but one are 0 are still in an order. */
DEVICE_TEST(choices_follow_the_logits)
{
    struct problem p = with_logits(d, 4, (const float[]){-500, -400, 0, -200, -300});
    expect_integers(d, "chosen experts", p.device.chosen, (const int32_t[]){2, 3, 4, 1}, 4);
    expect_close(d, "gates", p.device.gates, (const double[]){1, 0, 0, 0}, 4, 1e-30);
}

/* Probabilities that are nearly denormal: the products of their gradients would be, and are left out. */
DEVICE_TEST(tiny_gradients_are_left_out)
{
    struct problem p = with_logits(d, 1, (const float[]){0, -20, -60, -75, -86});
    struct operand drouters = draw(d, 5, 0.0f), none = {0};
    route_back(d, &p, ones(d, 1), NULL, NULL, drouters, none, none);
    const float *got = operand_values(d, drouters);
    const double expected[] = {-exp(-20), -exp(-60)};
    assert_true(fabs((double)got[1] / expected[0] - 1) < 1e-5 && fabs((double)got[2] / expected[1] - 1) < 1e-5);
    assert_true(got[3] == 0 && got[4] == 0);
}

/* --- Gradients --- */

/* Noisy top-k: dz = g (dg − Σ g dg), through z = x₀R + n (softplus(x₀N) + ε) */
static void reference_back(const struct problem *p, const float *dgates, double *drouters, double *dnoise, double *dx)
{
    const struct routing_case *c = &p->c;
    const double *gates = p->gates.expected;
    for (size_t i = 0; i < p->gates.n; i++) {
        size_t b = i / c->top_k, e = (size_t)p->expected.chosen[i], x0 = b * c->positions * c->width;
        if (p->expected.chosen[i] < 0)
            continue;
        size_t first = (size_t)p->router[b] * c->width * c->experts + e;
        double mean = 0, spread = 0;
        for (size_t j = b * c->top_k; j < (b + 1) * c->top_k; j++)
            mean += gates[j] * (double)dgates[j];
        for (size_t w = 0; w < c->width; w++)
            spread += (double)p->x.host[x0 + w] * (double)p->noise_weights.host[first + w * c->experts];
        double dz = gates[i] * ((double)dgates[i] - mean),
               du = dz * (double)p->noise.host[b * c->experts + e] / (1 + exp(-spread));
        for (size_t w = 0; w < c->width; w++) {
            size_t at = first + w * c->experts;
            drouters[at] += dz * (double)p->x.host[x0 + w];
            dnoise[at] += du * (double)p->x.host[x0 + w];
            dx[x0 + w] += dz * (double)p->routers.host[at] + du * (double)p->noise_weights.host[at];
        }
    }
}

DEVICE_TEST_OF(gradients_of_noisy_routing_add_up, cases)
{
    struct problem p = make_problem(d, parameters, false);
    struct operand dgates = draw(d, p.gates.n, 1.0f), drouters = draw(d, p.routers.n, 1.0f),
                   dnoise = draw(d, p.routers.n, 1.0f), dx = draw(d, p.x.n, 1.0f), lowest = drouters;
    operand_renew(d, &lowest);
    p.training = true;
    solve(&p, 1);
    route(d, &p);
    reference_back(&p, dgates.host, drouters.expected, dnoise.expected, dx.expected);
    route_back(d, &p, dgates.device, NULL, NULL, drouters, dnoise, dx);
    expect_operand(d, "gradient of the routers", drouters, 2e-5);
    expect_operand(d, "gradient of the noise matrices", dnoise, 2e-5);
    expect_operand(d, "gradient of the first position", dx, 2e-5);
    route_back(d, &p, dgates.device, NULL, NULL, lowest, dnoise, (struct operand){0});
    expect_equal_bits(d, "gradient of the lowest block's routers", lowest, drouters);
}

/* Variance / (mean² + epsilon), where the variance is Σ of squares / degrees. */
static double squared_variation(const double *values, size_t n, size_t degrees, double epsilon)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return squares / (double)degrees / (mean * mean + epsilon);
}

/* load [E] += Φ((c − T) / s), T the K-th largest z of the others */
static void add_load(const struct problem *p, size_t b, double *load)
{
    const struct routing_case *c = &p->c;
    double z[MANY_EXPERTS], clean[MANY_EXPERTS], next = -INFINITY;
    find_logits(p, b, 0, clean);
    find_logits(p, b, 1, z);
    double last = z[p->expected.chosen[(b + 1) * c->top_k - 1]];
    for (size_t e = 0; e < c->experts; e++)
        next = z[e] < last ? fmax(next, z[e]) : next;
    for (size_t e = 0; e < c->experts; e++) {
        double s = (z[e] - clean[e]) / (double)p->noise.host[b * c->experts + e];
        load[e] += 0.5 * erfc(-(clean[e] - (z[e] < last ? last : next)) / s / sqrt(2.0));
    }
}

enum balance_kind { NOISY, WIDENET, RMOE };

/* CV²(importance) + CV²(load); WideNet's E Σ m P; RMoE's (deviation / mean of the importance)². Of a problem that was solved. */
static double reference_balance(const struct problem *p, enum balance_kind kind)
{
    const struct routing_case *c = &p->c;
    double importance[MANY_EXPERTS] = {0}, load[MANY_EXPERTS] = {0}, sent[MANY_EXPERTS] = {0}, mean[MANY_EXPERTS] = {0};
    double samples = 0, loss = 0;
    for (size_t b = 0; b < c->samples; b++)
        samples += p->router[b] >= 0;
    if (samples < 1)
        return 0;
    for (size_t b = 0; b < c->samples && kind == NOISY; b++)
        if (p->router[b] >= 0)
            add_load(p, b, load);
    for (size_t i = 0; i < p->gates.n; i++)
        if (p->expected.chosen[i] >= 0) {
            sent[p->expected.chosen[i]] += 1 / samples;
            importance[p->expected.chosen[i]] += p->gates.expected[i];
        }
    for (size_t i = 0; i < p->logits.n; i++)
        mean[i % c->experts] += p->logits.expected[i] / samples;
    for (size_t e = 0; e < c->experts; e++)
        loss += (double)c->experts * sent[e] * mean[e];
    if (kind == WIDENET)
        return loss;
    return kind == RMOE ? squared_variation(importance, c->experts, c->experts, 0)
                        : squared_variation(importance, c->experts, c->experts - 1, 1e-10) +
                              squared_variation(load, c->experts, c->experts - 1, 1e-10);
}

struct gradient_case {
    struct routing_case shape;
    enum balance_kind kind;
    float weight; /* of the balance loss; 0: none */
};

static const struct gradient_case gradient_cases[] = {
    {{1, 1, 3, 4, 1, 1, 0, MIXED}, NOISY, 0.7f},
    {{9, 2, 7, 5, 2, 2, 0, SOME_WITHOUT_ROUTER}, NOISY, 0.7f},
    {{10, 1, 12, 70, 3, 1, 0, MIXED}, NOISY, 0.7f},
    {{8, 1, 4, 3, 3, 1, 0, MIXED}, NOISY, 0.7f}, /* K = E: importance alone */
    {{30, 1, 5, 6, 2, 2, 8, SOME_WITHOUT_ROUTER}, WIDENET, 0.7f},
    {{30, 1, 5, 6, 2, 2, 8, SOME_WITHOUT_ROUTER}, RMOE, 0.7f},
    {{21, 1, 4, 3, 1, 1, 0, MIXED}, RMOE, 0.7f},
    {{21, 1, 4, 3, 3, 1, 0, MIXED}, WIDENET, 0.7f},
    {{25, 1, 6, 4, 2, 3, 0, MIXED}, WIDENET, 0},
    {{5, 1, 3, 4, 2, 1, 2, ALL_WITHOUT_ROUTER}, WIDENET, 0.7f},
    {{5, 1, 3, 4, 2, 1, 2, ALL_WITHOUT_ROUTER}, RMOE, 0.7f},
    {{3, 1, 3, 1, 1, 1, 2, MIXED}, RMOE, 0.7f},
};

struct loss {
    struct problem *p;
    const struct gradient_case *g;
    const float *dgates;
};

static double reference_loss(void *context)
{
    struct loss *l = context;
    solve(l->p, (double)noise_deviation(l->p));
    double loss = (double)l->g->weight * reference_balance(l->p, l->g->kind);
    for (size_t i = 0; i < l->p->gates.n && l->p->softmax; i++)
        loss += (double)l->dgates[i] * l->p->gates.expected[i];
    return loss;
}

/* Adds to the losses; noisy top-k turns logits and gates into their gradients, softmax top-k sets that of the probabilities. */
static void balance(struct device *d, const struct problem *p, const struct gradient_case *g, float *dgates,
                    struct operand dlogits, float *losses)
{
    if (p->softmax)
        must_run(d, balance_softmax, .kind = g->kind == WIDENET ? BALANCE_WIDENET : BALANCE_RMOE,
                 .dispatch = &p->device, .probabilities = p->logits.device, .weight = g->weight, .share = 0.25f,
                 .dprobabilities = dlogits.device, .loss = losses, .unweighted = losses + 1);
    else
        must_run(d, balance, .dispatch = &p->device, .epsilon = 0.01f, .weight = g->weight, .share = 0.25f,
                 .logits = p->logits.device, .noise_logits = p->noise_logits.device, .drawn = p->drawn.device,
                 .dnoise_logits = dlogits.device, .dgates = dgates, .loss = losses, .unweighted = losses + 1);
}

static void expect_losses(struct device *d, const struct problem *p, const struct gradient_case *g, const float *losses)
{
    double loss = reference_balance(p, g->kind);
    expect_close(d, "balance loss, and without its weight", losses,
                 (const double[]){1 + (double)g->weight * loss, 1 + 0.25 * loss}, 2, 1e-5);
}

/* Of the balance loss and, in softmax top-k, of Σ dgates · gates of the kept choices. */
DEVICE_TEST_OF(losses_and_gradients_match, gradient_cases)
{
    const struct gradient_case *g = parameters;
    struct problem p = make_problem(d, &g->shape, g->kind != NOISY);
    struct operand dgates = draw(d, p.gates.n, 1.0f), dlogits = blank(d, p.logits.n), drouters = blank(d, p.routers.n),
                   dnoise = blank(d, p.routers.n), dx = blank(d, p.x.n), none = {0};
    float *losses = ones(d, 2);
    p.training = true;
    route(d, &p);
    solve(&p, (double)noise_deviation(&p));
    expect_routed(d, &p);
    if (g->weight > 0) {
        balance(d, &p, g, dgates.device, dlogits, losses);
        expect_losses(d, &p, g, losses);
    }
    const float *further = g->weight <= 0 ? NULL : p.softmax ? dlogits.device : p.logits.device;
    drouters.device = ones(d, drouters.n);
    dnoise.device = ones(d, dnoise.n);
    dx.device = ones(d, dx.n);
    route_back(d, &p, dgates.device, further, dlogits.device, drouters, dnoise, dx);
    struct loss operands = {&p, g, dgates.host};
    expect_slopes(d, "gradient of the routers", drouters.device, p.routers.host, drouters.n, 1e-3f, reference_loss,
                  &operands);
    if (!p.softmax)
        expect_slopes(d, "gradient of the noise matrices", dnoise.device, p.noise_weights.host, dnoise.n, 1e-4f,
                      reference_loss, &operands);
    expect_slopes(d, "gradient of the input", dx.device, p.x.host, dx.n, 1e-3f, reference_loss, &operands);
    struct operand lowest = {.device = ones(d, drouters.n), .host = drouters.host, .n = drouters.n};
    route_back(d, &p, dgates.device, further, dlogits.device, lowest, dnoise, none);
    expect_equal_bits(d, "gradient of the lowest block's routers", lowest, drouters);
}

/* The sums of many samples, on experts that are more than the threads of a block. */
DEVICE_TEST_OF(losses_of_many_samples_match, cases)
{
    struct problem p = make_problem(d, parameters, true);
    solve(&p, 0);
    route(d, &p);
    for (enum balance_kind kind = WIDENET; kind <= RMOE; kind++) {
        const struct gradient_case g = {.kind = kind, .weight = 2};
        float *losses = ones(d, 2);
        balance(d, &p, &g, NULL, blank(d, p.logits.n), losses);
        expect_losses(d, &p, &g, losses);
    }
}

/* --- What a recorded step does again --- */

struct step {
    struct device *d;
    struct problem p;
    struct dispatch parts;
    struct operand dgates, dprobabilities, drouters;
    float *losses;
};

static status run_step(void *context, struct error *failure)
{
    struct step *s = context;
    const struct gradient_case g = {.kind = WIDENET, .weight = 1};
    route(s->d, &s->p);
    balance(s->d, &s->p, &g, NULL, s->dprobabilities, s->losses);
    route_back(s->d, &s->p, s->dgates.device, s->dprobabilities.device, NULL, s->drouters, (struct operand){0},
               (struct operand){0});
    return s->d->ops->partition(
        s->d->backend, &(struct partition){.router = s->p.device_router, .state = s->p.state, .dispatch = &s->parts},
        failure);
}

/* The second step is replayed with the first one's operands and the state of its own. */
DEVICE_TEST(recorded_steps_draw_anew)
{
    static const struct routing_case c = {70, 1, 8, 5, 2, 2, 25, SOME_WITHOUT_ROUTER};
    struct step_state *state = room(d, sizeof *state);
    struct step step = {.d = d, .p = make_problem(d, &c, true), .losses = ones(d, 2)};
    step.parts = take_dispatch(&d->memory, c.samples, c.experts, 1);
    step.p.training = true;
    step.p.state = state;
    step.dgates = draw(d, step.p.gates.n, 1.0f);
    step.dprobabilities = blank(d, step.p.logits.n);
    step.drouters = blank(d, step.p.routers.n);
    const int32_t *owners[2];
    const float *gradients[2];
    struct recording recording = {0};
    for (uint32_t i = 0; i < 4; i++) {
        struct step_state now = {.seed = 5, .step = i % 2};
        must(d->ops->upload(d->backend, state, &now, sizeof now, &error));
        must(d->ops->zero(d->backend, step.drouters.device, step.drouters.n * sizeof(float), &error));
        run_again(d, &recording, i == 2, run_step, &step);
        if (i < 2) {
            owners[i] = from_device(d, step.parts.chosen, c.samples * sizeof **owners);
            gradients[i] = operand_values(d, step.drouters);
        }
        expect_integers(d, "owners", step.parts.chosen, owners[i % 2], c.samples);
        expect_floats(d, "gradient of the routers", step.drouters.device, gradients[i % 2], step.drouters.n);
    }
    assert_memory_not_equal(owners[0], owners[1], c.samples * sizeof **owners);
    assert_memory_not_equal(gradients[0], gradients[1], step.drouters.n * sizeof **gradients);
    assert_true((recording.owner != NULL) == (strcmp(d->ops->name, "cpu") != 0));
    d->ops->recording_destroy(d->backend, &recording);
}
