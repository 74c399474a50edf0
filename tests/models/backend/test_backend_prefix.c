/* Attention over learned keys and values, of all queries and of chosen ones, and its gradients. */
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"

#include <math.h>
#include <string.h>

struct prefix_case {
    size_t batch, positions, width, heads, length;
    bool chosen, weighted;
};

static const struct prefix_case prefix_cases[] = {
    {1, 1, 64, 1, 1, false, false},   {3, 5, 64, 1, 4, false, false},  {3, 5, 128, 2, 7, true, false},
    {2, 17, 160, 2, 64, false, true}, {4, 50, 128, 1, 8, true, true},  {2, 9, 288, 3, 5, false, true},
    {5, 33, 96, 2, 3, true, true},    {3, 197, 64, 8, 8, false, true},
};

/* Routers 1, −1, 0, 1, …; the second and the first of a sample's rows, in that order. */
static void number_samples(const struct prefix_case *c, int32_t *router, float *weights, int32_t *rows)
{
    for (size_t b = 0; b < c->batch; b++) {
        router[b] = (int32_t[]){1, -1, 0}[b % 3];
        weights[b] = 0.25f + (float)b;
        rows[2 * b] = (int32_t)(b * c->positions + 1 % c->positions);
        rows[2 * b + 1] = (int32_t)(b * c->positions);
    }
}

DEVICE_TEST_OF(prefixes_match_plain_loops, prefix_cases)
{
    enum { ROUTERS = 3, MOST = 8 };
    const struct prefix_case *c = parameters;
    int32_t router[MOST], rows[2 * MOST];
    float weights[MOST];
    number_samples(c, router, weights, rows);
    size_t queries = c->batch * (c->chosen ? 2 : c->positions), n = ROUTERS * 2 * c->length * c->width,
           ins = c->batch * c->positions * 3 * c->width, outs = queries * c->width;
    struct operand values = draw(d, n, 1.0f), qkv = draw_operand(d, ins, 1.0f), out = draw_operand(d, outs, 1.0f),
                   dout = draw_operand(d, outs, 1.0f), dqkv = draw_operand(d, ins, 1.0f), dvalues = draw(d, n, 1.0f),
                   unwanted = dvalues;
    struct prefix_operands host = {.batch = c->batch,
                                   .positions = c->positions,
                                   .width = c->width,
                                   .heads = c->heads,
                                   .length = c->length,
                                   .type = qkv.type,
                                   .rows = c->chosen ? rows : NULL,
                                   .rows_per_sample = 2,
                                   .router = router,
                                   .weights = c->weighted ? weights : NULL,
                                   .values = values.host,
                                   .qkv = qkv.host},
                           device = host;
    device.rows = c->chosen ? to_device(d, rows, sizeof rows) : NULL;
    device.router = to_device(d, router, sizeof router);
    device.weights = c->weighted ? to_device(d, weights, sizeof weights) : NULL;
    device.values = values.device;
    device.qkv = qkv.device;
    reference_prefix(out.expected, &host);
    reference_prefix_backward(dqkv.expected, dvalues.expected, &host, dout.host);
    must_run(d, prefix_attention, .prefix = device, .out = out.device);
    expect_operand(d, "attention over prefixes", out, 1e-5);
    must_run(d, prefix_attention_backward, .prefix = device, .routers = ROUTERS, .dout = dout.device,
             .dqkv = dqkv.device, .dvalues = dvalues.device);
    expect_operand(d, "gradient of the queries", dqkv, 1e-5);
    expect_operand(d, "gradient of the prefixes", dvalues, 1e-5);
    unwanted.host = operand_values(d, dvalues);
    must_run(d, prefix_attention_backward, .prefix = device, .routers = ROUTERS, .dout = dout.device,
             .dqkv = dqkv.device);
    expect_host_bits(d, "gradient that nobody wants", unwanted);

    /* A query that is not finite has no output, whatever it would attend to; its neighbours keep theirs. */
    qkv.host[(c->chosen ? (size_t)rows[0] : 0) * 3 * c->width] = NAN;
    operand_renew(d, &qkv);
    device.qkv = qkv.device;
    must_run(d, prefix_attention, .prefix = device, .out = out.device);
    const float *found = operand_values(d, out);
    for (size_t i = 0; i < out.n; i++)
        assert_true(isnan(found[i]) == (i < c->width / c->heads));
}

/* --- Gates --- */

struct gate_case {
    size_t batch, positions, width, heads, used, length;
    bool chosen, weighted, described; /* described: shares are kept by means and variances */
};

static const struct gate_case gate_cases[] = {
    {1, 1, 64, 1, 1, 1, false, false, false},  {3, 5, 64, 4, 2, 4, false, false, false},
    {3, 5, 320, 2, 1, 7, true, false, false},  {4, 17, 160, 8, 8, 5, false, true, false},
    {4, 50, 128, 4, 4, 8, true, true, true},   {6, 9, 288, 2, 1, 64, false, true, true},
    {3, 197, 64, 8, 8, 8, false, false, false}};

enum { GATE_SCALE_TENTHS = 3, CERTAIN_TENTHS = 8 };

/* One head of one row by plain loops; false: the row does not have it. */
struct plain_gate {
    size_t sample, row, position, first, column, columns;
    double weight, norm, open[PREFIX_LENGTH], share[PREFIX_LENGTH];
};

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double plain_score(const struct gated_prefix_operands *o, size_t row, size_t column)
{
    size_t all = o->heads * o->length, at = o->rows != NULL ? (size_t)o->rows[row] : row;
    return (double)o->scores[row * all + column] + (double)o->bias[at % o->positions * all + column];
}

static bool plain_gate(struct plain_gate *g, const struct gated_prefix_operands *o, size_t row, size_t head)
{
    size_t per_sample = o->rows != NULL ? o->rows_per_sample : o->positions, used = (size_t)*o->used;
    double sum = 0;
    *g = (struct plain_gate){.sample = row / per_sample, .row = row, .columns = o->width / used};
    if (head >= used || o->router[g->sample] < 0)
        return false;
    g->position = (o->rows != NULL ? (size_t)o->rows[row] : row) % o->positions;
    g->first = head * o->length;
    g->column = head * g->columns;
    g->weight = o->weights != NULL ? (double)o->weights[g->sample] : 1;
    for (size_t j = 0; j < o->length; j++)
        sum += g->open[j] = sigmoid(plain_score(o, row, g->first + j));
    g->norm = fmax(1, sum);
    for (size_t j = 0; j < o->length; j++) {
        double least = 1 - g->weight, x = plain_score(o, g->sample * per_sample, g->first + j);
        if (o->mean != NULL) {
            double variance = fmax((double)o->variance[g->first + j], 1e-6), gap = x - (double)o->mean[g->first + j];
            least = 1 - sigmoid(-gap * gap / (2 * variance) - 0.5 * log(2 * acos(-1) * variance));
        }
        g->share[j] = g->open[j] / g->norm;
        if (g->weight < (double)o->certain && !(g->share[j] > least))
            g->share[j] = 0;
    }
    return true;
}

static void plain_gated(double *out, double *seen, const struct gated_prefix_operands *o)
{
    struct plain_gate g;
    size_t per_sample = o->rows != NULL ? o->rows_per_sample : o->positions, all = o->heads * o->length;
    for (size_t i = 0; i < o->batch * per_sample; i++)
        for (size_t h = 0; h < o->heads; h++) {
            for (size_t u = 0; plain_gate(&g, o, i, h) && u < g.columns; u++) {
                size_t at = i * o->width + g.column + u;
                double sum = (double)o->scale * (g.norm - 1) * (double)o->residual[at];
                for (size_t j = 0; j < o->length; j++)
                    sum += g.share[j] * (double)o->values[j * o->width + g.column + u];
                out[at] += g.weight * sum;
            }
            for (size_t j = h * o->length; i % per_sample == 0 && j < (h + 1) * o->length; j++)
                seen[i / per_sample * all + j] = plain_score(o, i, j);
        }
}

struct plain_gradients {
    double *scores, *residual, *values, *bias;
};

/* Every path from a score by itself: through its share, and through m in all shares and in the residual's part. */
static void plain_head_backward(const struct plain_gradients *d, const struct gated_prefix_operands *o,
                                const struct plain_gate *g, const float *dout)
{
    size_t all = o->heads * o->length, row = g->row * o->width + g->column;
    double through_norm = 0;
    for (size_t u = 0; u < g->columns; u++) {
        double slope = g->weight * (double)dout[row + u], r = (double)o->residual[row + u];
        d->residual[row + u] = slope * (double)o->scale * (g->norm - 1);
        through_norm += slope * (double)o->scale * r;
        for (size_t j = 0; j < o->length; j++) {
            through_norm -= slope * g->share[j] / g->norm * (double)o->values[j * o->width + g->column + u];
            d->values[j * o->width + g->column + u] += slope * g->share[j];
        }
    }
    for (size_t j = 0; j < o->length; j++) {
        double sum = g->norm > 1 ? through_norm : 0;
        for (size_t u = 0; g->share[j] > 0 && u < g->columns; u++)
            sum += g->weight * (double)dout[row + u] * (double)o->values[j * o->width + g->column + u] / g->norm;
        sum *= g->open[j] * (1 - g->open[j]);
        d->scores[g->row * all + g->first + j] = sum;
        d->bias[g->position * all + g->first + j] += sum;
    }
}

static void number_gates(const struct gate_case *c, int32_t *router, float *weights, int32_t *rows)
{
    for (size_t b = 0; b < c->batch; b++) {
        router[b] = b % 3 == 1 ? -1 : 2;
        weights[b] = 0.95f - 0.2f * (float)b;
        rows[2 * b] = (int32_t)(b * c->positions);
        rows[2 * b + 1] = (int32_t)(b * c->positions + b % c->positions);
    }
}

DEVICE_TEST_OF(gates_match_plain_loops, gate_cases)
{
    enum { MOST = 8 };
    const struct gate_case *c = parameters;
    int32_t router[MOST], rows[2 * MOST];
    float weights[MOST], used = (float)c->used;
    number_gates(c, router, weights, rows);
    size_t queries = c->batch * (c->chosen ? 2 : c->positions), all = c->heads * c->length;
    struct operand scores = draw(d, queries * all, 1.5f), bias = draw(d, c->positions * all, 1.0f),
                   values = draw(d, c->length * c->width, 1.0f), residual = draw(d, queries * c->width, 1.0f),
                   mean = draw(d, all, 1.0f), variance = draw(d, all, 1.0f),
                   out = draw_operand(d, queries * c->width, 1.0f), dout = draw_operand(d, queries * c->width, 1.0f),
                   seen = blank(d, c->batch * all), dscores = blank(d, queries * all),
                   dresidual = blank(d, queries * c->width), dvalues = draw(d, c->length * c->width, 1.0f),
                   dbias = draw(d, c->positions * all, 1.0f);
    for (size_t i = 0; i < all; i++)
        variance.host[i] = 0.05f + 0.1f * fabsf(variance.host[i]);
    operand_renew(d, &variance);
    struct gated_prefix_operands host = {.batch = c->batch,
                                         .positions = c->positions,
                                         .width = c->width,
                                         .heads = c->heads,
                                         .length = c->length,
                                         .type = out.type,
                                         .rows = c->chosen ? rows : NULL,
                                         .rows_per_sample = 2,
                                         .router = router,
                                         .weights = c->weighted ? weights : NULL,
                                         .used = &used,
                                         .scores = scores.host,
                                         .bias = bias.host,
                                         .values = values.host,
                                         .residual = residual.host,
                                         .scale = GATE_SCALE_TENTHS / 10.0f,
                                         .certain = CERTAIN_TENTHS / 10.0f,
                                         .mean = c->described ? mean.host : NULL,
                                         .variance = variance.host},
                                 device = host;
    device.rows = c->chosen ? to_device(d, rows, sizeof rows) : NULL;
    device.router = to_device(d, router, sizeof router);
    device.weights = c->weighted ? to_device(d, weights, sizeof weights) : NULL;
    device.used = to_device(d, &used, sizeof used);
    device.scores = scores.device;
    device.bias = bias.device;
    device.values = values.device;
    device.residual = residual.device;
    device.mean = c->described ? mean.device : NULL;
    device.variance = variance.device;
    struct plain_gradients plain = {dscores.expected, dresidual.expected, dvalues.expected, dbias.expected};
    struct plain_gate gate;
    plain_gated(out.expected, seen.expected, &host);
    memset(dscores.expected, 0, dscores.n * sizeof(double));
    memset(dresidual.expected, 0, dresidual.n * sizeof(double));
    for (size_t i = 0; i < queries; i++)
        for (size_t h = 0; h < c->heads; h++)
            if (plain_gate(&gate, &host, i, h))
                plain_head_backward(&plain, &host, &gate, dout.host);
    must_run(d, gated_prefix, .prefix = device, .out = out.device, .seen = seen.device);
    expect_operand(d, "gated prefix", out, 1e-5);
    expect_operand(d, "scores of first rows", seen, 1e-6);
    must_run(d, gated_prefix_backward, .prefix = device, .dout = dout.device, .dscores = dscores.device,
             .dresidual = dresidual.device, .dvalues = dvalues.device, .dbias = dbias.device);
    expect_operand(d, "gradient of the scores", dscores, 1e-5);
    expect_operand(d, "gradient of the residual", dresidual, 1e-5);
    expect_operand(d, "gradient of the values", dvalues, 1e-5);
    expect_operand(d, "gradient of the bias", dbias, 1e-5);

    /* A score that is not finite leaves no output of its head, and none of the others changes. */
    scores.host[0] = NAN;
    operand_renew(d, &scores);
    device.scores = scores.device;
    must_run(d, gated_prefix, .prefix = device, .out = out.device);
    const float *found = operand_values(d, out);
    for (size_t i = 0; i < out.n; i++)
        assert_true(isnan(found[i]) == (i < c->width / c->used));
}
