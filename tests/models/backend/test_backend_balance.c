/* The balance loss of noisy top-k, against the formulas in double precision and their central differences. */
#include "tests/models/device.h"

#include <math.h>
#include <string.h>

enum { EXPERTS_MOST = 70 };

struct balance_case {
    size_t batch, width, experts, top_k, tasks;
    bool some_without_router;
};

static const struct balance_case cases[] = {
    {1, 3, 4, 1, 1, false},
    {9, 7, 5, 2, 2, true},
    {30, 12, 70, 3, 1, false},
    {8, 4, 3, 3, 1, false}, /* K = E: importance alone */
};

/* What the loss depends on, in double precision. */
struct inputs {
    const struct balance_case *c;
    double *x, *routers, *noise; /* [B, d], [T, d, E] each */
    const float *drawn;          /* [B, E] */
    const int32_t *router;       /* [B] */
};

struct sample {
    double clean[EXPERTS_MOST], s[EXPERTS_MOST], z[EXPERTS_MOST];
    size_t order[EXPERTS_MOST]; /* experts by falling z */
};

static void look_at_sample(const struct inputs *in, size_t b, struct sample *sample)
{
    const struct balance_case *c = in->c;
    size_t matrix = (size_t)in->router[b] * c->width * c->experts;
    for (size_t e = 0; e < c->experts; e++) {
        double spread = 0;
        sample->clean[e] = 0;
        for (size_t i = 0; i < c->width; i++) {
            sample->clean[e] += in->x[b * c->width + i] * in->routers[matrix + i * c->experts + e];
            spread += in->x[b * c->width + i] * in->noise[matrix + i * c->experts + e];
        }
        sample->s[e] = log1p(exp(spread)) + 0.01;
        sample->z[e] = sample->clean[e] + (double)in->drawn[b * c->experts + e] * sample->s[e];
    }
    for (size_t e = 0; e < c->experts; e++) {
        size_t rank = 0;
        for (size_t other = 0; other < c->experts; other++)
            rank += sample->z[other] > sample->z[e];
        sample->order[rank] = e;
    }
}

static double squared_variation(const double *values, size_t n)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return squares / (double)(n - 1) / (mean * mean + 1e-10);
}

static double reference_loss(const struct inputs *in)
{
    const struct balance_case *c = in->c;
    double importance[EXPERTS_MOST] = {0}, load[EXPERTS_MOST] = {0};
    struct sample sample;
    for (size_t b = 0; b < c->batch; b++) {
        if (in->router[b] < 0)
            continue;
        look_at_sample(in, b, &sample);
        double total = 0;
        for (size_t k = 0; k < c->top_k; k++)
            total += exp(sample.z[sample.order[k]]);
        for (size_t k = 0; k < c->top_k; k++)
            importance[sample.order[k]] += exp(sample.z[sample.order[k]]) / total;
        for (size_t rank = 0; rank < c->experts; rank++) {
            size_t e = sample.order[rank];
            if (c->top_k == c->experts)
                load[e] += 1;
            else /* the K-th largest z of the others */
                load[e] +=
                    0.5 * erfc(-(sample.clean[e] - sample.z[sample.order[rank < c->top_k ? c->top_k : c->top_k - 1]]) /
                               sample.s[e] / sqrt(2.0));
        }
    }
    return squared_variation(importance, c->experts) + squared_variation(load, c->experts);
}

static double slope(const struct inputs *in, double *value)
{
    const double h = 1e-5, before = *value;
    *value = before + h;
    double above = reference_loss(in);
    *value = before - h;
    double below = reference_loss(in);
    *value = before;
    return (above - below) / (2 * h);
}

/* Gradients are added to what was there. */
static void expect_slopes(struct device *d, const char *name, const struct inputs *in, double *values, size_t n,
                          const float *got, double weight)
{
    double *expected = doubles(d, NULL, n);
    for (size_t i = 0; i < n; i++)
        expected[i] = 1 + weight * slope(in, &values[i]);
    expect_close(d, name, got, expected, n, 1e-4);
}

static float *ones(struct device *d, size_t n)
{
    float *values = arena_take(&d->host, n * sizeof *values);
    for (size_t i = 0; i < n; i++)
        values[i] = 1;
    return to_device(d, values, n * sizeof *values);
}

DEVICE_TEST_OF(loss_and_gradients_match, cases)
{
    const struct balance_case *c = parameters;
    size_t matrices = c->tasks * c->width * c->experts, logits = c->batch * c->experts, n = c->batch * c->width;
    struct operand x = draw(d, n, 1.0f), routers = draw(d, matrices, 0.4f), noise = draw(d, matrices, 0.3f),
                   drawn = draw(d, logits, 1.0f);
    int32_t router[32];
    for (size_t b = 0; b < c->batch; b++)
        router[b] = c->some_without_router && b % 4 == 1 ? -1 : (int32_t)(b % c->tasks);
    const int32_t *device_router = to_device(d, router, c->batch * sizeof *router);
    struct inputs in = {
        c,     doubles(d, x.host, n), doubles(d, routers.host, matrices), doubles(d, noise.host, matrices), drawn.host,
        router};
    struct dispatch dispatch = take_dispatch(&d->memory, c->batch, c->experts, c->top_k);
    struct route route = {.batch = c->batch,
                          .positions = 1,
                          .width = c->width,
                          .experts = c->experts,
                          .top_k = c->top_k,
                          .routers = c->tasks,
                          .x = x.device,
                          .routers_value = routers.device,
                          .noise_value = noise.device,
                          .router = device_router,
                          .training = true,
                          .noise = drawn.device,
                          .epsilon = 0.01f,
                          .dispatch = &dispatch,
                          .noise_logits = room(d, logits * sizeof(float)),
                          .drawn = room(d, logits * sizeof(float)),
                          .logits = room(d, logits * sizeof(float)),
                          .counts = room(d, c->experts * sizeof(int32_t))};
    must(d->ops->route(d->backend, &route, &error));
    struct balance op = {.dispatch = &dispatch,
                         .epsilon = 0.01f,
                         .weight = 0.7f,
                         .share = 0.25f,
                         .logits = route.logits,
                         .noise_logits = route.noise_logits,
                         .drawn = route.drawn,
                         .dnoise_logits = room(d, logits * sizeof(float)),
                         .dgates = room(d, c->batch * c->top_k * sizeof(float)),
                         .loss = ones(d, 1),
                         .unweighted = ones(d, 1)};
    must(d->ops->balance(d->backend, &op, &error));
    expect_close(d, "loss", op.loss, (const double[]){1 + 0.7 * reference_loss(&in)}, 1, 1e-5);
    expect_close(d, "without its weight", op.unweighted, (const double[]){1 + 0.25 * reference_loss(&in)}, 1, 1e-5);
    struct route_backward back = {.batch = c->batch,
                                  .positions = 1,
                                  .width = c->width,
                                  .experts = c->experts,
                                  .top_k = c->top_k,
                                  .x = x.device,
                                  .routers_value = routers.device,
                                  .noise_value = noise.device,
                                  .router = device_router,
                                  .dispatch = &dispatch,
                                  .noise_logits = route.noise_logits,
                                  .drawn = route.drawn,
                                  .dgates = op.dgates,
                                  .dlogits = op.logits,
                                  .dnoise_logits = op.dnoise_logits,
                                  .drouters = ones(d, matrices),
                                  .dnoise = ones(d, matrices),
                                  .dx = ones(d, n)};
    must(d->ops->route_backward(d->backend, &back, &error));
    expect_slopes(d, "gradient of the routers", &in, in.routers, matrices, back.drouters, 0.7);
    expect_slopes(d, "gradient of the noise matrices", &in, in.noise, matrices, back.dnoise, 0.7);
    expect_slopes(d, "gradient of the input", &in, in.x, n, back.dx, 0.7);
}
