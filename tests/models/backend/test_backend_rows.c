/* Operations row by row: norms, activations, gathers, means, attention. */
#include "core/rng.h"
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"

#include <math.h>
#include <string.h>

struct rows_case {
    size_t rows, columns;
    float deviation, offset;
};

static const struct rows_case rows_cases[] = {
    {1, 1, 1, 0},    {7, 63, 1, 0},  {63, 65, 30, 5}, {197, 7, 1e-4f, 0}, {65, 577, 1, -3}, {577, 197, 1, 0},
    {9, 132, 1, 0},  {3, 512, 1, 0}, {3, 768, 30, 5}, {2, 1024, 1, -3}, /* rows that a GPU keeps in registers */
    {2, 1028, 1, 0},                                                    /* and a wider one */
};
static struct operand draw_rows(struct device *d, const struct rows_case *c)
{
    struct operand x = draw(d, c->rows * c->columns, c->deviation);
    for (size_t i = 0; i < c->rows * c->columns; i++)
        x.host[i] += c->offset;
    x.device = to_device(d, x.host, c->rows * c->columns * sizeof(float));
    return x;
}

/* dx = addend + …, where the addend is dx itself, another matrix or none; and dx once more as an operand of products. */
static void norm_gradients(struct device *d, const struct rows_case *c, const struct layer_norm *forward,
                           struct matrix x)
{
    size_t n = c->rows * c->columns;
    const float *gain = from_device(d, forward->gain, c->columns * sizeof *gain);
    struct operand dy = draw_operand(d, n, 1.0f), dx = draw(d, n, 1.0f), dgain = draw(d, c->columns, 1.0f),
                   dbias = draw(d, c->columns, 1.0f), other = blank(d, n), alone = blank(d, n),
                   product = blank_operand(d, n);
    struct matrix past = matrix_rows(to_device(d, dx.host, n * sizeof(float)), c->rows, c->columns),
                  slope = matrix_rows(dy.host, c->rows, c->columns);
    double *edx = doubles(d, dx.host, n), *ealone = doubles(d, NULL, n), *unused = doubles(d, NULL, 2 * c->columns),
           *egain = doubles(d, dgain.host, c->columns), *ebias = doubles(d, dbias.host, c->columns);
    reference_layer_norm_backward(edx, egain, ebias, x, slope, gain);
    reference_layer_norm_backward(ealone, unused, unused + c->columns, x, slope, gain);
    struct matrix in_place = matrix_rows(dx.device, c->rows, c->columns);
    struct layer_norm_backward backward = {.x = forward->x,
                                           .dy = operand_rows(d, dy.device, c->rows, c->columns),
                                           .dx = in_place,
                                           .addend = in_place,
                                           .gain = forward->gain,
                                           .statistics = forward->statistics,
                                           .dgain = dgain.device,
                                           .dbias = dbias.device};
    must(d->ops->layer_norm_backward(d->backend, &backward, &error));
    expect_close(d, "gradient of the input", dx.device, edx, n, 2e-5);
    expect_close(d, "gradient of the gain", dgain.device, egain, c->columns, 2e-5);
    expect_close(d, "gradient of the bias", dbias.device, ebias, c->columns, 2e-5);
    backward.dgain = backward.dbias = NULL;
    backward.dx = matrix_rows(other.device, c->rows, c->columns);
    backward.addend = past;
    if (backward.dy.type == TENSOR_BF16)
        backward.rounded = operand_rows(d, product.device, c->rows, c->columns);
    must(d->ops->layer_norm_backward(d->backend, &backward, &error));
    float *values = from_device(d, dx.device, n * sizeof *values);
    expect_floats(d, "the same past a frozen norm, out of place", other.device, values, n);
    if (backward.rounded.data != NULL) {
        operand_to_device(d, values, n);
        expect_operand(d, "the same as an operand", product.device, values, n);
    }
    backward.dx = matrix_rows(alone.device, c->rows, c->columns);
    backward.addend = backward.rounded = (struct matrix){0};
    must(d->ops->layer_norm_backward(d->backend, &backward, &error));
    expect_close(d, "gradient without an addend", alone.device, ealone, n, 2e-5);
}

DEVICE_TEST_OF(layer_norm_and_back, rows_cases)
{
    const struct rows_case *c = parameters;
    size_t n = c->rows * c->columns;
    struct operand x = draw_rows(d, c), gain = draw(d, c->columns, 1.0f), bias = draw(d, c->columns, 1.0f);
    struct operand y = blank_operand(d, n), again = blank_operand(d, n), statistics = blank(d, 2 * c->rows);
    struct matrix host = matrix_rows(x.host, c->rows, c->columns), device = matrix_rows(x.device, c->rows, c->columns);
    double *expected = doubles(d, NULL, n), *moments = doubles(d, NULL, 2 * c->rows);
    reference_layer_norm(expected, moments, host, gain.host, bias.host);
    struct layer_norm forward = {.x = device,
                                 .y = operand_rows(d, y.device, c->rows, c->columns),
                                 .gain = gain.device,
                                 .bias = bias.device,
                                 .statistics = statistics.device,
                                 .epsilon = 1e-5f};
    must(d->ops->layer_norm(d->backend, &forward, &error));
    expect_close_operand(d, "layer norm", y.device, expected, n, 1e-5);
    expect_close(d, "statistics", statistics.device, moments, 2 * c->rows, 1e-5);
    forward.y = operand_rows(d, again.device, c->rows, c->columns);
    forward.statistics = NULL;
    must(d->ops->layer_norm(d->backend, &forward, &error));
    expect_operand(d, "layer norm without statistics", again.device, operand_from_device(d, y.device, n), n);

    forward.statistics = statistics.device;
    norm_gradients(d, c, &forward, host);
}

TEST(layer_norm_of_more_than_stays_in_the_caches)
{
    on_device(layer_norm_and_back_on, &(struct rows_case){8200, 64, 1, 0.5f});
}

DEVICE_TEST_OF(activation_and_back, rows_cases)
{
    const struct rows_case *c = parameters;
    size_t n = c->rows * c->columns;
    for (enum activation kind = ACTIVATION_NONE; kind <= ACTIVATION_GELU_TANH; kind++) {
        struct operand x = draw_rows(d, c), dy = draw(d, n, 1.0f), y = blank(d, n), dx = blank(d, n);
        double *expected = doubles(d, NULL, n), *slopes = doubles(d, NULL, n);
        for (size_t i = 0; i < n; i++) {
            expected[i] = reference_activation(kind, (double)x.host[i]);
            slopes[i] = (double)dy.host[i] * reference_slope(kind, (double)x.host[i]);
        }
        struct matrix in = matrix_rows(x.device, c->rows, c->columns),
                      grad = matrix_rows(dy.device, c->rows, c->columns);
        struct activate forward = {.activation = kind, .x = in, .out = matrix_rows(y.device, c->rows, c->columns)};
        struct activate_backward backward = {
            .activation = kind, .x = in, .dy = grad, .dx = matrix_rows(dx.device, c->rows, c->columns)};
        must(d->ops->activate(d->backend, &forward, &error));
        must(d->ops->activate_backward(d->backend, &backward, &error));
        expect_close(d, "activation", y.device, expected, n, 2e-6);
        expect_close(d, "activation's gradient", dx.device, slopes, n, 2e-6);
        backward.dx = grad;
        must(d->ops->activate_backward(d->backend, &backward, &error));
        expect_floats(d, "gradient in place", dy.device, from_device(d, dx.device, n * sizeof(float)), n);
        forward.out = in;
        must(d->ops->activate(d->backend, &forward, &error));
        expect_floats(d, "activation in place", x.device, from_device(d, y.device, n * sizeof(float)), n);
    }
}

DEVICE_TEST_OF(rows_are_gathered_and_scattered, rows_cases)
{
    const struct rows_case *c = parameters;
    size_t picked = (c->rows + 1) / 2;
    struct operand x = draw_rows(d, c), out = blank_operand(d, picked * c->columns),
                   sum = draw(d, c->rows * c->columns, 1.0f);
    x.device = operand_to_device(d, x.host, c->rows * c->columns);
    float *expected = operand_from_device(d, out.device, picked * c->columns); /* a host copy to fill */
    double *added = doubles(d, sum.host, c->rows * c->columns);
    int32_t rows[577];
    for (size_t i = 0; i < picked; i++)
        rows[i] = (int32_t)(c->rows - 1 - 2 * i);
    for (size_t i = 0; i < picked * c->columns; i++) {
        size_t at = (size_t)rows[i / c->columns] * c->columns + i % c->columns;
        expected[i] = x.host[at];
        added[at] += (double)x.host[at];
    }
    const int32_t *device_rows = to_device(d, rows, picked * sizeof *rows);
    struct matrix chosen = operand_rows(d, out.device, picked, c->columns);
    must_run(d, gather_rows, .x = operand_rows(d, x.device, c->rows, c->columns), .out = chosen, .rows = device_rows);
    expect_operand(d, "gathered rows", out.device, expected, picked * c->columns);
    must_run(d, scatter_rows, .x = chosen, .out = matrix_rows(sum.device, c->rows, c->columns), .rows = device_rows);
    expect_close(d, "scattered rows", sum.device, added, c->rows * c->columns, 1e-6);
}

DEVICE_TEST_OF(rows_are_numbered, rows_cases)
{
    const struct rows_case *c = parameters;
    struct operand out = blank(d, c->rows);
    must_run(d, arange, .count = c->rows, .first = -3, .step = 7, .out = (int32_t *)out.device);
    const int32_t *found = from_device(d, out.device, c->rows * sizeof *found);
    for (size_t i = 0; i < c->rows; i++)
        assert_int_equal(found[i], -3 + 7 * (int32_t)i);
}

/* Three samples of 5 positions, with lengths 5, 1 and 3. */
DEVICE_TEST(own_positions_are_numbered)
{
    enum { BATCH = 3, POSITIONS = 5, ROWS = BATCH * POSITIONS };
    const int32_t *lengths = to_device(d, (const int32_t[]){5, 1, 3}, BATCH * sizeof *lengths),
                  *value = to_device(d, (const int32_t[]){7, -1, 0}, BATCH * sizeof *value);
    int32_t *out = room(d, ROWS * sizeof *out);
    must_run(d, arange, .count = ROWS, .step = 1, .lengths = lengths, .positions = POSITIONS, .out = out);
    expect_integers(d, "own rows", out, (const int32_t[]){0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 10, 11, 12, 12, 12}, ROWS);
    struct spread_positions spread = {
        .batch = BATCH, .positions = POSITIONS, .lengths = lengths, .value = value, .out = out};
    must(d->ops->spread_positions(d->backend, &spread, &error));
    expect_integers(d, "to own positions", out, (const int32_t[]){7, 7, 7, 7, 7, -1, -1, -1, -1, -1, 0, 0, 0, -1, -1},
                    ROWS);
    spread.lengths = NULL;
    must(d->ops->spread_positions(d->backend, &spread, &error));
    expect_integers(d, "to all positions", out, (const int32_t[]){7, 7, 7, 7, 7, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0},
                    ROWS);
}

/* Values whose squares no float can hold: norms would be infinite, and rows of zeros come out. */
DEVICE_TEST(overflows_are_not_hidden)
{
    enum { COLUMNS = 65 };
    float huge[COLUMNS], ones[COLUMNS];
    for (size_t j = 0; j < COLUMNS; j++) {
        huge[j] = j % 2 ? 3e30f : -3e30f;
        ones[j] = 1;
    }
    struct operand y = blank(d, COLUMNS), z = blank(d, COLUMNS), r = blank(d, 4);
    struct matrix x = matrix_rows(to_device(d, huge, sizeof huge), 1, COLUMNS);
    float *gain = to_device(d, ones, sizeof ones);
    must_run(d, layer_norm, .x = x, .y = matrix_rows(y.device, 1, COLUMNS), .gain = gain, .bias = gain,
             .epsilon = 1e-5f);
    must_run(d, normalize, .x = x, .y = matrix_rows(z.device, 1, COLUMNS));
    float *bad = to_device(d, (const float[]){NAN, -NAN, -INFINITY, INFINITY}, 4 * sizeof *bad);
    must_run(d, activate, .activation = ACTIVATION_RELU, .x = matrix_rows(bad, 1, 4),
             .out = matrix_rows(r.device, 1, 4));
    const float *normed = from_device(d, y.device, sizeof huge), *unit = from_device(d, z.device, sizeof huge),
                *active = from_device(d, r.device, 4 * sizeof *active);
    for (size_t j = 0; j < COLUMNS; j++)
        assert_true(isnan(normed[j]) && isnan(unit[j]));
    assert_true(isnan(active[0]) && isnan(active[1]) && active[2] == 0 && isinf(active[3]));
}

DEVICE_TEST_OF(rows_are_normalised, rows_cases)
{
    const struct rows_case *c = parameters;
    size_t n = c->rows * c->columns;
    struct operand x = draw_rows(d, c), y = blank(d, n), norms = blank(d, c->rows), dy = draw(d, n, 1.0f),
                   dx = draw(d, n, 1.0f);
    double *unit = doubles(d, NULL, n), *lengths = doubles(d, NULL, c->rows), *edx = doubles(d, dx.host, n);
    for (size_t i = 0; i < c->rows; i++) {
        double along = 0;
        for (size_t j = 0; j < c->columns; j++)
            lengths[i] += pow((double)x.host[i * c->columns + j], 2);
        lengths[i] = sqrt(lengths[i]);
        for (size_t j = i * c->columns; j < (i + 1) * c->columns; j++) {
            unit[j] = (double)x.host[j] / lengths[i];
            along += unit[j] * (double)dy.host[j];
        }
        for (size_t j = i * c->columns; j < (i + 1) * c->columns; j++)
            edx[j] += ((double)dy.host[j] - unit[j] * along) / lengths[i];
    }
    struct matrix out = matrix_rows(y.device, c->rows, c->columns);
    must_run(d, normalize, .x = matrix_rows(x.device, c->rows, c->columns), .y = out, .norms = norms.device);
    expect_close(d, "unit rows", y.device, unit, n, 1e-6);
    expect_close(d, "norms", norms.device, lengths, c->rows, 1e-6);
    must_run(d, normalize_backward, .y = out, .dy = matrix_rows(dy.device, c->rows, c->columns),
             .dx = matrix_rows(dx.device, c->rows, c->columns), .norms = norms.device);
    expect_close(d, "gradient through the norm", dx.device, edx, n, 2e-6);
}

DEVICE_TEST(a_row_of_zeros_stays_zero)
{
    struct operand dy = draw(d, 7, 1.0f), y = blank(d, 7), norm = blank(d, 1), dx = draw(d, 7, 1.0f);
    struct matrix x = matrix_rows(room(d, 7 * sizeof(float)), 1, 7), out = matrix_rows(y.device, 1, 7);
    must_run(d, normalize, .x = x, .y = out, .norms = norm.device);
    expect_floats(d, "a row of zeros", y.device, (const float[7]){0}, 7);
    must_run(d, normalize_backward, .y = out, .dy = matrix_rows(dy.device, 1, 7), .dx = matrix_rows(dx.device, 1, 7),
             .norms = norm.device);
    expect_floats(d, "its gradient", dx.device, dx.host, 7);
}

/* The softmax over the top_k largest of a row, and back from dy; threshold 0: none. */
static void reference_sparse(double *y, double *dx, const float *x, const float *dy, size_t n, size_t top_k,
                             double temperature, double threshold)
{
    double total = 0, mean = 0;
    for (size_t j = 0; j < n; j++) {
        size_t before = 0;
        for (size_t i = 0; i < n; i++)
            before += x[i] > x[j] || (x[i] == x[j] && i < j);
        y[j] = before < top_k ? exp((double)x[j] / temperature) : 0;
        total += y[j];
    }
    for (size_t j = 0; j < n; j++) {
        y[j] /= total;
        mean += y[j] * (double)dy[j];
    }
    for (size_t j = 0; j < n; j++) {
        dx[j] = y[j] * ((double)dy[j] - mean) / temperature;
        y[j] = threshold != 0 && (double)x[j] < threshold ? 0 : y[j];
    }
}

DEVICE_TEST(softmax_over_the_largest)
{
    static const size_t sizes[][3] = {{5, 4, 2}, {33, 37, 5}, {3, 40, 40}, {7, 64, 99}, {9, 1, 1}, {2, 176, 16}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t limited = 0; limited < 2; limited++) {
            size_t rows = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            double temperature = 0.25, threshold = limited ? 0.5 : 0;
            struct operand x = draw(d, rows * n, 1.0f), dy = draw(d, rows * n, 1.0f), y = blank(d, rows * n);
            x.host[n - 1] = x.host[0]; /* of equal ones the first */
            x.device = to_device(d, x.host, rows * n * sizeof(float));
            double *ey = doubles(d, NULL, rows * n), *edx = doubles(d, NULL, rows * n);
            for (size_t i = 0; i < rows * n; i += n)
                reference_sparse(ey + i, edx + i, x.host + i, dy.host + i, n, k, temperature, threshold);
            struct matrix out = matrix_rows(y.device, rows, n), slope = matrix_rows(dy.device, rows, n);
            must_run(d, sparse_softmax, .x = matrix_rows(x.device, rows, n), .y = out, .top_k = k,
                     .temperature = (float)temperature, .threshold = (float)threshold);
            expect_close(d, "sparse softmax", y.device, ey, rows * n, 2e-6);
            if (limited)
                continue;
            must_run(d, sparse_softmax_backward, .y = out, .dy = slope, .dx = slope, .temperature = (float)temperature);
            expect_close(d, "its gradient", dy.device, edx, rows * n, 5e-6);
        }
}

/* A NaN reaches every weight of its row, and no other row. */
DEVICE_TEST(softmax_over_the_largest_shows_nan)
{
    float values[8] = {1, NAN, 2, 3, 1, 2, 3, 4};
    struct operand y = blank(d, 8);
    must_run(d, sparse_softmax, .x = matrix_rows(to_device(d, values, sizeof values), 2, 4),
             .y = matrix_rows(y.device, 2, 4), .top_k = 4, .temperature = 1);
    const float *found = from_device(d, y.device, sizeof values);
    for (size_t i = 0; i < 8; i++)
        assert_true(isnan(found[i]) == (i < 4));
}

/* Of all positions, of all but the first (which has no way back), and of each sample's own, and back. */
DEVICE_TEST_OF(positions_are_averaged, rows_cases)
{
    const struct rows_case *c = parameters;
    enum { BATCH = 3 };
    size_t n = BATCH * c->rows * c->columns;
    for (int way = 0; way < 3; way++) {
        size_t first = way == 1 && c->rows > 1;
        const int32_t all = (int32_t)c->rows, lengths[BATCH] = {all, way < 2 ? all : 1, way < 2 ? all : (all + 1) / 2};
        struct operand x = draw(d, n, 1.0f), out = blank(d, BATCH * c->columns), dx = draw(d, n, 1.0f),
                       dout = draw(d, BATCH * c->columns, 1.0f);
        double *expected = doubles(d, NULL, BATCH * c->columns), *slope = doubles(d, dx.host, n);
        for (size_t i = 0; i < n; i++) {
            size_t b = i / c->columns / c->rows, l = i / c->columns % c->rows, at = b * c->columns + i % c->columns,
                   length = (size_t)lengths[b];
            if (l < first || l >= length)
                continue;
            expected[at] += (double)x.host[i] / (double)(length - first);
            slope[i] += (double)dout.host[at] / (double)length;
        }
        const int32_t *own = way == 2 ? to_device(d, lengths, sizeof lengths) : NULL;
        must_run(d, mean_positions, .batch = BATCH, .positions = c->rows, .first = first, .width = c->columns,
                 .lengths = own, .x = x.device, .out = out.device);
        expect_close(d, "mean over positions", out.device, expected, BATCH * c->columns, 1e-6);
        if (own == NULL)
            continue;
        must_run(d, mean_positions_backward, .batch = BATCH, .positions = c->rows, .width = c->columns, .lengths = own,
                 .dout = dout.device, .dx = dx.device);
        expect_close(d, "its gradient", dx.device, slope, n, 1e-6);
    }
}

struct attention_case {
    size_t batch, positions, width, heads;
    bool causal;
    float deviation; /* large: scores far apart, a probability near 1 */
    size_t chosen;   /* queries a sample; 0: all */
};

static const struct attention_case attention_cases[] = {
    {1, 1, 64, 1, true, 1, 0},    {3, 7, 192, 3, false, 1, 0},   {2, 65, 128, 2, true, 1, 0},
    {2, 63, 64, 1, false, 12, 0}, {1, 197, 64, 1, false, 1, 0},  {1, 577, 64, 1, false, 1, 0},
    {2, 65, 160, 2, false, 1, 0}, {2, 33, 176, 2, true, 1, 0},   {1, 70, 208, 2, false, 1, 0}, /* ViT-H, g and bigG */
    {1, 33, 128, 1, true, 1, 0},  {20, 65, 448, 7, false, 1, 0}, /* more than stays in the caches */
    {3, 50, 128, 2, false, 1, 1}, {2, 77, 128, 1, true, 1, 2},   {1, 257, 208, 2, false, 1, 1},
};

/* Values at chosen rows of every position: dout of the others is 0, which gives their queries no gradient. */
static float *spread_rows(struct device *d, const struct attention_case *c, const int32_t *rows, const float *chosen)
{
    float *all = arena_take(&d->host, c->batch * c->positions * c->width * sizeof *all);
    memset(all, 0, c->batch * c->positions * c->width * sizeof *all);
    for (size_t i = 0; i < c->batch * c->chosen; i++)
        memcpy(all + (size_t)rows[i] * c->width, chosen + i * c->width, c->width * sizeof *all);
    return all;
}

/* Forward and back, of all positions or (rows not NULL, on the host) of the chosen ones. */
struct attended {
    void *out, *dqkv;
};

static struct attended attend(struct device *d, const struct attention_case *c, const int32_t *rows, const void *qkv,
                              const void *dout)
{
    size_t queries = c->chosen > 0 ? c->chosen : c->positions, results = c->batch * queries * c->width;
    struct attended done = {blank_operand(d, results).device,
                            blank_operand(d, 3 * c->batch * c->positions * c->width).device};
    struct attention op = {.batch = c->batch,
                           .positions = c->positions,
                           .width = c->width,
                           .heads = c->heads,
                           .causal = c->causal,
                           .type = backend_operand_type(d->backend),
                           .rows_per_sample = c->chosen,
                           .qkv = qkv,
                           .out = done.out,
                           .lse = room(d, c->batch * c->heads * queries * sizeof(float))};
    if (c->chosen > 0)
        op.rows = to_device(d, rows, c->batch * queries * sizeof *rows);
    must(d->ops->attention(d->backend, &op, &error));
    must_run(d, attention_backward, .batch = op.batch, .positions = op.positions, .width = op.width, .heads = op.heads,
             .causal = op.causal, .type = op.type, .rows = op.rows, .rows_per_sample = op.rows_per_sample,
             .qkv = op.qkv, .out = op.out, .dout = dout, .lse = op.lse, .dqkv = done.dqkv);
    return done;
}

/* Of each sample the first, then the last ones backwards. */
static int32_t *choose_rows(struct device *d, const struct attention_case *c)
{
    int32_t *rows = arena_take(&d->host, (c->batch * c->chosen + 1) * sizeof *rows);
    for (size_t i = 0; i < c->batch * c->chosen; i++)
        rows[i] = (int32_t)(i / c->chosen * c->positions + (c->positions - i % c->chosen) % c->positions);
    return rows;
}

DEVICE_TEST_OF(attention_and_back, attention_cases)
{
    const struct attention_case *c = parameters;
    size_t queries = c->chosen > 0 ? c->chosen : c->positions, n = c->batch * c->positions * c->width,
           results = c->batch * queries * c->width;
    struct operand qkv = draw_operand(d, 3 * n, c->deviation), dout = draw_operand(d, results, 1.0f);
    int32_t *rows = choose_rows(d, c);
    struct attended done = attend(d, c, rows, qkv.device, dout.device);
    double *expected = doubles(d, NULL, n), *gradient = doubles(d, NULL, 3 * n);
    struct reference_attention reference = {c->batch,
                                            c->positions,
                                            c->width,
                                            c->heads,
                                            c->causal,
                                            qkv.host,
                                            c->chosen > 0 ? spread_rows(d, c, rows, dout.host) : dout.host};
    reference_attention(expected, &reference);
    reference_attention_backward(gradient, &reference);
    double *wanted = doubles(d, NULL, results);
    for (size_t i = 0; i < results; i++)
        wanted[i] = expected[c->chosen > 0 ? (size_t)rows[i / c->width] * c->width + i % c->width : i];
    double tolerance = c->deviation > 1 ? 1e-4 : 5e-6; /* scores of ±1000 are themselves rounded to 1e-4 */
    expect_close_operand(d, "attention", done.out, wanted, results, tolerance);
    expect_close_operand(d, "attention's gradient", done.dqkv, gradient, 3 * n, tolerance);
}

/* Around the sizes at which kernels change: strips of 16, chunks of 32, 80, 176 and 208 keys. */
TEST(attention_of_all_lengths)
{
    static const size_t lengths[] = {2, 15, 16, 17, 31, 32, 33, 48, 77, 80, 81, 113, 129, 160, 177, 193, 208, 209, 210};
    static const size_t columns[] = {64, 96, 128};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t j = 0; j < 3; j++)
            on_device(attention_and_back_on,
                      &(struct attention_case){1, lengths[i], columns[j], 1, (i + j) % 2 == 0, 1, 0});
}

/* A causal position has the same bits however many follow it: what comes after a prompt, and how long the batch's longest
 * one is, must not matter. */
DEVICE_TEST(attention_does_not_know_what_follows)
{
    enum { LONGEST = 230, WIDTH = 128 };
    struct operand qkv = draw_operand(d, LONGEST * 3 * WIDTH, 1.0f);
    const float *whole = NULL;
    for (size_t positions = LONGEST; positions > 0; positions -= positions > 212 ? 9 : positions > 82 ? 2 : 1) {
        struct operand out = blank_operand(d, positions * WIDTH);
        must_run(d, attention, .batch = 1, .positions = positions, .width = WIDTH, .heads = WIDTH / 64, .causal = true,
                 .type = backend_operand_type(d->backend), .qkv = operand_to_device(d, qkv.host, positions * 3 * WIDTH),
                 .out = out.device);
        if (whole == NULL)
            whole = operand_from_device(d, out.device, positions * WIDTH);
        expect_operand(d, "attention of a shorter prompt", out.device, whole, positions * WIDTH);
    }
}

/* A value of one head that is not finite, at one position of the last sample: of its query, key, value or dout. */
struct strange {
    const struct attention_case *c;
    const int32_t *rows; /* chosen */
    size_t part, position;
    float value;
};
enum { QUERY, KEY, VALUE, DOUT };

/* Whether the query of a position of the last sample is asked for and sees a key. */
static bool sees(const struct strange *s, size_t query, size_t key)
{
    bool asked = s->c->chosen == 0;
    for (size_t i = 0; i < s->c->chosen; i++)
        asked = asked || (size_t)s->rows[(s->c->batch - 1) * s->c->chosen + i] % s->c->positions == query;
    return asked && (!s->c->causal || key <= query);
}

/* Of the last sample's queries and keys: whether results and gradients come from the value, and whether they are NaN. */
enum { MOST_POSITIONS = 230 };
struct reach {
    bool touched[MOST_POSITIONS], loud[MOST_POSITIONS];
};

/* A query is not loud where the value is a key that it gives a score of −∞, and so a weight of 0, and it sees another one; the
 * gradients of a key and its value are what the queries are that see it. */
static void find_reach(const struct strange *s, const float *qkv, struct reach *queries, struct reach *keys)
{
    const struct attention_case *c = s->c;
    bool own = s->part == QUERY || s->part == DOUT;
    for (size_t i = 0; i < c->positions; i++) {
        const float *row = qkv + ((c->batch - 1) * c->positions + i) * 3 * c->width;
        bool alone = c->causal && i == 0;
        queries->touched[i] = own ? i == s->position && sees(s, i, 0) : sees(s, i, s->position);
        queries->loud[i] = queries->touched[i] && (s->part != KEY || isnan(s->value) || alone || row[1] * s->value > 0);
    }
    for (size_t j = 0; j < c->positions; j++)
        for (size_t i = 0; i < c->positions; i++)
            if (sees(s, i, j)) {
                keys->touched[j] = keys->touched[j] || queries->touched[i];
                keys->loud[j] = keys->loud[j] || queries->loud[i];
            }
}

/* A row as before; of one that is touched all but the first head, which shows it where it has to. */
static void check_row(const struct strange *s, const char *what, size_t position, bool touched, bool shows,
                      const float *found, const float *before)
{
    size_t columns = s->c->width / s->c->heads, first = touched ? columns : 0;
    bool finite = true;
    for (size_t j = 0; j < columns; j++)
        finite = finite && isfinite(found[j]);
    if (memcmp(found + first, before + first, (s->c->width - first) * sizeof *found) != 0 ||
        (touched && shows && finite))
        fail_msg("%s of position %zu %s %g in part %zu of position %zu", what, position,
                 touched && shows && finite ? "hides" : "knows of", (double)s->value, s->part, s->position);
}

static void check_strange(struct device *d, const struct strange *s, float *qkv, float *dout, const float *before[2])
{
    static const char *const gradients[] = {"dq", "dk", "dv"};
    const struct attention_case *c = s->c;
    size_t queries = c->chosen > 0 ? c->chosen : c->positions, at = (c->batch - 1) * c->positions + s->position,
           n = c->batch * c->positions * c->width;
    float *place = qkv + (at * 3 + s->part) * c->width + 1;
    for (size_t i = 0; i < c->chosen && s->part == DOUT; i++)
        if ((size_t)s->rows[(c->batch - 1) * c->chosen + i] == at)
            place = dout + ((c->batch - 1) * c->chosen + i) * c->width + 1;
    if (s->part == DOUT && c->chosen == 0)
        place = dout + at * c->width + 1;
    float kept = *place;
    *place = s->value;
    struct attended done = attend(d, c, s->rows, operand_to_device(d, qkv, 3 * n),
                                  operand_to_device(d, dout, c->batch * queries * c->width));
    *place = kept;
    const float *out = operand_from_device(d, done.out, c->batch * queries * c->width),
                *dqkv = operand_from_device(d, done.dqkv, 3 * n);
    struct reach of_queries = {0}, of_keys = {0};
    find_reach(s, qkv, &of_queries, &of_keys);
    for (size_t i = 0; i < c->batch * queries; i++) {
        size_t row = c->chosen > 0 ? (size_t)s->rows[i] : i, position = row % c->positions;
        bool touched = row / c->positions == c->batch - 1 && s->part != DOUT && of_queries.touched[position];
        bool loud = touched && of_queries.loud[position];
        check_row(s, "out", position, touched, loud, out + i * c->width, before[0] + i * c->width);
        if (!loud && !isfinite(out[i * c->width + 1]))
            fail_msg("out of position %zu is not finite, although %g in part %zu of position %zu has no weight",
                     position, (double)s->value, s->part, s->position);
    }
    for (size_t i = 0; i < 3 * c->batch * c->positions; i++) {
        size_t position = i / 3 % c->positions, part = i % 3;
        const struct reach *reach = part == QUERY ? &of_queries : &of_keys;
        bool touched = i / 3 / c->positions == c->batch - 1 && reach->touched[position];
        bool loud = touched && reach->loud[position];
        check_row(s, gradients[part], position, touched, loud && !(part == VALUE && s->part == VALUE),
                  dqkv + i * c->width, before[1] + i * c->width);
    }
}

static const struct attention_case attends_to_strange_cases[] = {
    {1, 2, 128, 2, true, 1, 0},  {2, 39, 128, 2, true, 1, 0}, {1, 77, 128, 2, true, 1, 0}, {1, 230, 160, 2, true, 1, 0},
    {2, 33, 128, 2, true, 1, 1}, {1, 77, 128, 2, true, 1, 2}, {1, 65, 256, 2, true, 1, 0}, {2, 50, 128, 2, false, 1, 1},
};

/* What a query may not see it does not know of, also where 0 times that would be NaN; what it sees, it does not hide. */
DEVICE_TEST_OF(attention_does_not_know_what_it_does_not_see, attends_to_strange_cases)
{
    const struct attention_case *c = parameters;
    static const float values[] = {NAN, INFINITY, -INFINITY};
    size_t queries = c->chosen > 0 ? c->chosen : c->positions, results = c->batch * queries * c->width,
           n = c->batch * c->positions * c->width;
    struct operand qkv = draw_operand(d, 3 * n, c->deviation), dout = draw_operand(d, results, 1.0f);
    const int32_t *rows = choose_rows(d, c);
    struct attended done = attend(d, c, rows, qkv.device, dout.device);
    const float *before[] = {operand_from_device(d, done.out, results), operand_from_device(d, done.dqkv, 3 * n)};
    const size_t positions[] = {0, c->positions / 2, c->positions - 1};
    for (size_t part = QUERY; part <= DOUT; part++)
        for (size_t p = 0; p < 3; p++)
            for (size_t v = 0; v < 3; v++) {
                struct strange s = {c, rows, part, positions[p], values[v]};
                if (part != DOUT || sees(&s, s.position, 0))
                    check_strange(d, &s, qkv.host, dout.host, before);
            }
}

static const struct attention_case attends_without_weight_cases[] = {
    {1, 2, 128, 2, true, 1, 0}, {2, 39, 128, 2, true, 1, 0},   {1, 77, 128, 2, false, 1, 0},
    {1, 3, 128, 2, true, 1, 0}, {1, 197, 128, 2, false, 1, 0}, {1, 230, 160, 2, true, 1, 0},
};

/* The last query and the second key are finite, but their product is −∞: it has the weight 0. Where other products have such
 * factors (the first column of dq and dk), results are as large as those. */
DEVICE_TEST_OF(attention_gives_minus_infinity_no_weight, attends_without_weight_cases)
{
    const struct attention_case *c = parameters;
    size_t n = c->batch * c->positions * c->width;
    struct operand qkv = draw_operand(d, 3 * n, 1.0f), dout = draw_operand(d, n, 1.0f);
    for (size_t i = 0; i < 2 * c->batch * c->positions; i++)
        qkv.host[(i / 2 * 3 + i % 2) * c->width] = 0;
    qkv.host[(c->positions - 1) * 3 * c->width] = 1e30f;
    qkv.host[(3 + 1) * c->width] = -1e30f;
    struct attended done = attend(d, c, NULL, operand_to_device(d, qkv.host, 3 * n), dout.device);
    double *expected = doubles(d, NULL, n), *gradient = doubles(d, NULL, 3 * n);
    struct reference_attention reference = {c->batch, c->positions, c->width, c->heads, c->causal, qkv.host, dout.host};
    reference_attention(expected, &reference);
    reference_attention_backward(gradient, &reference);
    float *found = operand_from_device(d, done.dqkv, 3 * n);
    for (size_t i = 0; i < 2 * c->batch * c->positions; i++) {
        assert_true(isfinite(found[(i / 2 * 3 + i % 2) * c->width]));
        found[(i / 2 * 3 + i % 2) * c->width] = 0;
        gradient[(i / 2 * 3 + i % 2) * c->width] = 0;
    }
    expect_close_operand(d, "attention with a score of -infinity", done.out, expected, n, 5e-6);
    expect_close_operand(d, "its gradient", operand_to_device(d, found, 3 * n), gradient, 3 * n, 5e-6);
}

/* Queries and keys of the first `columns` are so large that their products are infinite; values are as ever. */
static void attend_overflowing(struct device *d, size_t positions, size_t columns)
{
    enum { BATCH = 8, WIDTH = 128 };
    const struct attention_case c = {BATCH, positions, WIDTH, WIDTH / 64, false, 1, 0};
    size_t rows = BATCH * positions, values = rows * 3 * WIDTH;
    struct operand qkv = draw_operand(d, values, 1.0f), dout = draw_operand(d, rows * WIDTH, 1.0f);
    for (size_t l = 0; l < rows; l++)
        for (size_t j = 0; j < columns; j++)
            qkv.host[l * 3 * WIDTH + j] = qkv.host[l * 3 * WIDTH + WIDTH + j] = 1e30f;
    struct attended done = attend(d, &c, NULL, operand_to_device(d, qkv.host, values), dout.device);
    const float *found = operand_from_device(d, done.out, rows * WIDTH),
                *gradient = operand_from_device(d, done.dqkv, values);
    for (size_t i = 0; i < rows * WIDTH; i++)
        assert_true(i % WIDTH < columns ? isnan(found[i]) : isfinite(found[i]));
    for (size_t i = 0; i < values; i++)
        assert_true(i % WIDTH < columns ? isnan(gradient[i]) : isfinite(gradient[i]));
}

/* All of it first: what that leaves in a worker's rooms must not come into fewer rows. */
DEVICE_TEST(attention_does_not_hide_overflows)
{
    attend_overflowing(d, 31, 128);
    attend_overflowing(d, 17, 64);
    attend_overflowing(d, 37, 64);
}

DEVICE_TEST(dropout_is_addressed)
{
    enum { ROWS = 7, COLUMNS = 1036, N = ROWS * COLUMNS }; /* more columns than one piece */
    struct step_state state = {.seed = 0xfedcba9876543210u, .task = 9, .step = 123456};
    struct rng rng = rng_make(state.seed, RNG_TOWER_DROPOUT, state.task, state.step);
    for (int k = 0; k < 3; k++) { /* in place, beside it, and with an addend */
        struct operand x = draw_operand(d, N, 1.0f), out = k > 0 ? blank_operand(d, N) : x, addend = draw(d, N, 1.0f);
        double *expected = doubles(d, x.host, N);
        struct dropout op = {.x = operand_rows(d, x.device, ROWS, COLUMNS),
                             .out = operand_rows(d, out.device, ROWS, COLUMNS),
                             .addend = k > 1 ? matrix_rows(addend.device, ROWS, COLUMNS) : (struct matrix){0},
                             .probability = 0.3f,
                             .base = ((uint64_t)1 << 41) + 8,
                             .state = to_device(d, &state, sizeof state)};
        for (size_t i = 0; i < N; i++) {
            uint32_t words[4];
            rng_block(&rng, (op.base + i) / 4, words);
            expected[i] = words[i % 4] < (uint32_t)((double)0.3f * 4294967296.0) ? 0 : expected[i] / (1 - (double)0.3f);
            expected[i] += k > 1 ? (double)addend.host[i] : 0;
        }
        must(d->ops->dropout(d->backend, &op, &error));
        expect_close_operand(d, "values that stay", out.device, expected, N, 1e-6);
        op.base = 2;
        assert_int_equal(d->ops->dropout(d->backend, &op, &error), ERROR_ARGUMENT);
    }
}
