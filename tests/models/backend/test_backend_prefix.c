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
