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
    for (size_t i = 0; i < x.n; i++)
        x.host[i] += c->offset;
    operand_renew(d, &x);
    return x;
}

/* dx = addend + …, where the addend is dx itself, another matrix or none; and dx once more as an operand of products. */
static void norm_gradients(struct device *d, struct operand x, struct operand gain, struct operand statistics)
{
    size_t columns = gain.n;
    struct operand dy = draw_operand(d, x.n, 1.0f), dx = draw(d, x.n, 1.0f), dgain = draw(d, columns, 1.0f),
                   dbias = draw(d, columns, 1.0f), other = blank(d, x.n), alone = blank(d, x.n),
                   product = blank_operand(d, x.n), past = dx;
    struct matrix in = device_rows(x, columns), slope = device_rows(dy, columns), into = device_rows(dx, columns),
                  as_operand = product.type == TENSOR_BF16 ? device_rows(product, columns) : (struct matrix){0};
    operand_renew(d, &past);
    reference_layer_norm_backward(dx.expected, dgain.expected, dbias.expected, host_rows(x, columns),
                                  host_rows(dy, columns), gain.host);
    for (size_t i = 0; i < x.n; i++)
        alone.expected[i] = dx.expected[i] - (double)dx.host[i];
    must_run(d, layer_norm_backward, .x = in, .dy = slope, .dx = into, .addend = into, .gain = gain.device,
             .statistics = statistics.device, .dgain = dgain.device, .dbias = dbias.device);
    expect_operand(d, "gradient of the input", dx, 2e-5);
    expect_operand(d, "gradient of the gain", dgain, 2e-5);
    expect_operand(d, "gradient of the bias", dbias, 2e-5);
    must_run(d, layer_norm_backward, .x = in, .dy = slope, .dx = device_rows(other, columns),
             .addend = device_rows(past, columns), .rounded = as_operand, .gain = gain.device,
             .statistics = statistics.device);
    expect_equal_bits(d, "the same past a frozen norm, out of place", other, dx);
    if (as_operand.data != NULL) {
        other.host = operand_values(d, dx);
        other.type = TENSOR_BF16;
        operand_renew(d, &other);
        expect_equal_bits(d, "the same as an operand", product, other);
    }
    must_run(d, layer_norm_backward, .x = in, .dy = slope, .dx = device_rows(alone, columns), .gain = gain.device,
             .statistics = statistics.device);
    expect_operand(d, "gradient without an addend", alone, 2e-5);
}

DEVICE_TEST_OF(layer_norm_and_back, rows_cases)
{
    const struct rows_case *c = parameters;
    struct operand x = draw_rows(d, c), gain = draw(d, c->columns, 1.0f), bias = draw(d, c->columns, 1.0f),
                   y = blank_operand(d, x.n), again = blank_operand(d, x.n), statistics = blank(d, 2 * c->rows);
    reference_layer_norm(y.expected, statistics.expected, host_rows(x, c->columns), gain.host, bias.host);
    must_run(d, layer_norm, .x = device_rows(x, c->columns), .y = device_rows(y, c->columns), .gain = gain.device,
             .bias = bias.device, .statistics = statistics.device, .epsilon = 1e-5f);
    expect_operand(d, "layer norm", y, 1e-5);
    expect_operand(d, "statistics", statistics, 1e-5);
    must_run(d, layer_norm, .x = device_rows(x, c->columns), .y = device_rows(again, c->columns), .gain = gain.device,
             .bias = bias.device, .epsilon = 1e-5f);
    expect_equal_bits(d, "layer norm without statistics", again, y);
    norm_gradients(d, x, gain, statistics);
}

TEST(layer_norm_of_more_than_stays_in_the_caches)
{
    on_device(layer_norm_and_back_on, &(struct rows_case){8200, 64, 1, 0.5f});
}

DEVICE_TEST_OF(activation_and_back, rows_cases)
{
    const struct rows_case *c = parameters;
    for (enum activation kind = ACTIVATION_NONE; kind <= ACTIVATION_GELU_TANH; kind++) {
        struct operand x = draw_rows(d, c), dy = draw(d, x.n, 1.0f), y = blank(d, x.n), dx = blank(d, x.n);
        struct matrix in = device_rows(x, c->columns), slope = device_rows(dy, c->columns);
        for (size_t i = 0; i < x.n; i++) {
            y.expected[i] = reference_activation(kind, (double)x.host[i]);
            dx.expected[i] = (double)dy.host[i] * reference_slope(kind, (double)x.host[i]);
        }
        must_run(d, activate, .activation = kind, .x = in, .out = device_rows(y, c->columns));
        expect_operand(d, "activation", y, 2e-6);
        must_run(d, activate_backward, .activation = kind, .x = in, .dy = slope, .dx = device_rows(dx, c->columns));
        expect_operand(d, "activation's gradient", dx, 2e-6);
        must_run(d, activate_backward, .activation = kind, .x = in, .dy = slope, .dx = slope);
        expect_equal_bits(d, "gradient in place", dy, dx);
        must_run(d, activate, .activation = kind, .x = in, .out = in);
        expect_equal_bits(d, "activation in place", x, y);
    }
}

DEVICE_TEST_OF(rows_are_gathered_and_scattered, rows_cases)
{
    const struct rows_case *c = parameters;
    size_t picked = (c->rows + 1) / 2;
    struct operand x = draw_rows(d, c), out = blank_operand(d, picked * c->columns), sum = draw(d, x.n, 1.0f);
    int32_t rows[577];
    x.type = out.type;
    operand_renew(d, &x);
    for (size_t i = 0; i < picked; i++)
        rows[i] = (int32_t)(c->rows - 1 - 2 * i);
    for (size_t i = 0; i < out.n; i++) {
        size_t at = (size_t)rows[i / c->columns] * c->columns + i % c->columns;
        out.host[i] = x.host[at];
        sum.expected[at] += (double)x.host[at];
    }
    const int32_t *device = to_device(d, rows, picked * sizeof *rows);
    must_run(d, gather_rows, .x = device_rows(x, c->columns), .out = device_rows(out, c->columns), .rows = device);
    expect_host_bits(d, "gathered rows", out);
    must_run(d, scatter_rows, .x = device_rows(out, c->columns), .out = device_rows(sum, c->columns), .rows = device);
    expect_operand(d, "scattered rows", sum, 1e-6);
}

/* From a first one on, and the own ones of three samples of 5 positions, with lengths 5, 1 and 3. */
DEVICE_TEST(rows_are_numbered)
{
    enum { BATCH = 3, POSITIONS = 5, ROWS = BATCH * POSITIONS };
    const int32_t *lengths = to_device(d, (const int32_t[]){5, 1, 3}, BATCH * sizeof *lengths),
                  *value = to_device(d, (const int32_t[]){7, -1, 0}, BATCH * sizeof *value);
    int32_t expected[577], *out = room(d, sizeof expected);
    for (int32_t i = 0; i < 577; i++)
        expected[i] = -3 + 7 * i;
    must_run(d, arange, .count = 577, .first = -3, .step = 7, .out = out);
    expect_integers(d, "numbers", out, expected, 577);
    must_run(d, arange, .count = ROWS, .step = 1, .lengths = lengths, .positions = POSITIONS, .out = out);
    expect_integers(d, "own rows", out, (const int32_t[]){0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 10, 11, 12, 12, 12}, ROWS);
    must_run(d, spread_positions, .batch = BATCH, .positions = POSITIONS, .lengths = lengths, .value = value,
             .out = out);
    expect_integers(d, "to own positions", out, (const int32_t[]){7, 7, 7, 7, 7, -1, -1, -1, -1, -1, 0, 0, 0, -1, -1},
                    ROWS);
    must_run(d, spread_positions, .batch = BATCH, .positions = POSITIONS, .value = value, .out = out);
    expect_integers(d, "to all positions", out, (const int32_t[]){7, 7, 7, 7, 7, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0},
                    ROWS);
}

/* Values whose squares no float can hold: norms would be infinite, and rows of zeros come out. */
DEVICE_TEST(overflows_are_not_hidden)
{
    enum { COLUMNS = 65 };
    static const float bad[] = {NAN, -NAN, -INFINITY, INFINITY};
    struct operand x = blank(d, COLUMNS), y = blank(d, COLUMNS), z = blank(d, COLUMNS), r = blank(d, 4);
    for (size_t j = 0; j < COLUMNS; j++)
        x.host[j] = j % 2 ? 3e30f : -3e30f;
    memcpy(r.host, bad, sizeof bad);
    operand_renew(d, &x);
    operand_renew(d, &r);
    float *gain = ones(d, COLUMNS);
    must_run(d, layer_norm, .x = device_rows(x, COLUMNS), .y = device_rows(y, COLUMNS), .gain = gain, .bias = gain,
             .epsilon = 1e-5f);
    must_run(d, normalize, .x = device_rows(x, COLUMNS), .y = device_rows(z, COLUMNS));
    must_run(d, activate, .activation = ACTIVATION_RELU, .x = device_rows(r, 4), .out = device_rows(r, 4));
    const float *normed = operand_values(d, y), *unit = operand_values(d, z), *active = operand_values(d, r);
    for (size_t j = 0; j < COLUMNS; j++)
        assert_true(isnan(normed[j]) && isnan(unit[j]));
    assert_true(isnan(active[0]) && isnan(active[1]) && active[2] == 0 && isinf(active[3]));
}

DEVICE_TEST_OF(rows_are_normalised, rows_cases)
{
    const struct rows_case *c = parameters;
    struct operand x = draw_rows(d, c), y = blank(d, x.n), norms = blank(d, c->rows), dy = draw(d, x.n, 1.0f),
                   dx = draw(d, x.n, 1.0f);
    for (size_t i = 0; i < c->rows; i++) {
        double along = 0, *norm = &norms.expected[i];
        for (size_t j = i * c->columns; j < (i + 1) * c->columns; j++)
            *norm += pow((double)x.host[j], 2);
        *norm = sqrt(*norm);
        for (size_t j = i * c->columns; j < (i + 1) * c->columns; j++) {
            y.expected[j] = (double)x.host[j] / *norm;
            along += y.expected[j] * (double)dy.host[j];
        }
        for (size_t j = i * c->columns; j < (i + 1) * c->columns; j++)
            dx.expected[j] += ((double)dy.host[j] - y.expected[j] * along) / *norm;
    }
    struct matrix out = device_rows(y, c->columns);
    must_run(d, normalize, .x = device_rows(x, c->columns), .y = out, .norms = norms.device);
    expect_operand(d, "unit rows", y, 1e-6);
    expect_operand(d, "norms", norms, 1e-6);
    must_run(d, normalize_backward, .y = out, .dy = device_rows(dy, c->columns), .dx = device_rows(dx, c->columns),
             .norms = norms.device);
    expect_operand(d, "gradient through the norm", dx, 2e-6);
}

DEVICE_TEST(a_row_of_zeros_stays_zero)
{
    struct operand dy = draw(d, 7, 1.0f), y = blank(d, 7), norm = blank(d, 1), dx = draw(d, 7, 1.0f);
    must_run(d, normalize, .x = matrix_rows(room(d, 7 * sizeof(float)), 1, 7), .y = device_rows(y, 7),
             .norms = norm.device);
    expect_floats(d, "a row of zeros", y.device, (const float[7]){0}, 7);
    must_run(d, normalize_backward, .y = device_rows(y, 7), .dy = device_rows(dy, 7), .dx = device_rows(dx, 7),
             .norms = norm.device);
    expect_host_bits(d, "its gradient", dx);
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
            operand_renew(d, &x);
            for (size_t i = 0; i < rows * n; i += n)
                reference_sparse(y.expected + i, dy.expected + i, x.host + i, dy.host + i, n, k, temperature,
                                 threshold);
            struct matrix out = device_rows(y, n), slope = device_rows(dy, n);
            must_run(d, sparse_softmax, .x = device_rows(x, n), .y = out, .top_k = k, .temperature = (float)temperature,
                     .threshold = (float)threshold);
            expect_operand(d, "sparse softmax", y, 2e-6);
            if (limited)
                continue;
            must_run(d, sparse_softmax_backward, .y = out, .dy = slope, .dx = slope, .temperature = (float)temperature);
            expect_operand(d, "its gradient", dy, 5e-6);
        }
}

/* A NaN reaches every weight of its row, and no other row. */
DEVICE_TEST(softmax_over_the_largest_shows_nan)
{
    float values[8] = {1, NAN, 2, 3, 1, 2, 3, 4};
    struct operand y = blank(d, 8);
    must_run(d, sparse_softmax, .x = matrix_rows(to_device(d, values, sizeof values), 2, 4), .y = device_rows(y, 4),
             .top_k = 4, .temperature = 1);
    const float *found = operand_values(d, y);
    for (size_t i = 0; i < 8; i++)
        assert_true(isnan(found[i]) == (i < 4));
}

/* Of all positions, of all but the first (which has no way back), and of each sample's own, and back. */
DEVICE_TEST_OF(positions_are_averaged, rows_cases)
{
    const struct rows_case *c = parameters;
    enum { BATCH = 3 };
    for (int way = 0; way < 3; way++) {
        size_t first = way == 1 && c->rows > 1;
        const int32_t all = (int32_t)c->rows, lengths[BATCH] = {all, way < 2 ? all : 1, way < 2 ? all : (all + 1) / 2};
        struct operand x = draw(d, BATCH * c->rows * c->columns, 1.0f), out = blank(d, BATCH * c->columns),
                       dx = draw(d, x.n, 1.0f), dout = draw(d, out.n, 1.0f);
        for (size_t i = 0; i < x.n; i++) {
            size_t b = i / c->columns / c->rows, l = i / c->columns % c->rows, at = b * c->columns + i % c->columns,
                   length = (size_t)lengths[b];
            if (l < first || l >= length)
                continue;
            out.expected[at] += (double)x.host[i] / (double)(length - first);
            dx.expected[i] += (double)dout.host[at] / (double)length;
        }
        const int32_t *own = way == 2 ? to_device(d, lengths, sizeof lengths) : NULL;
        must_run(d, mean_positions, .batch = BATCH, .positions = c->rows, .first = first, .width = c->columns,
                 .lengths = own, .x = x.device, .out = out.device);
        expect_operand(d, "mean over positions", out, 1e-6);
        if (own == NULL)
            continue;
        must_run(d, mean_positions_backward, .batch = BATCH, .positions = c->rows, .width = c->columns, .lengths = own,
                 .dout = dout.device, .dx = dx.device);
        expect_operand(d, "its gradient", dx, 1e-6);
    }
}

DEVICE_TEST(dropout_is_addressed)
{
    enum { ROWS = 7, COLUMNS = 1036, N = ROWS * COLUMNS }; /* more columns than one piece */
    struct step_state state = {.seed = 0xfedcba9876543210u, .task = 9, .step = 123456};
    struct rng rng = rng_make(state.seed, RNG_TOWER_DROPOUT, state.task, state.step);
    for (int k = 0; k < 3; k++) { /* in place, beside it, and with an addend */
        struct operand x = draw_operand(d, N, 1.0f), out = k > 0 ? blank_operand(d, N) : x, addend = draw(d, N, 1.0f);
        struct dropout op = {.x = device_rows(x, COLUMNS),
                             .out = device_rows(out, COLUMNS),
                             .addend = k > 1 ? device_rows(addend, COLUMNS) : (struct matrix){0},
                             .probability = 0.3f,
                             .base = ((uint64_t)1 << 41) + 8,
                             .state = to_device(d, &state, sizeof state)};
        for (size_t i = 0; i < N; i++)
            out.expected[i] = (double)x.host[i] * reference_dropout(&rng, op.base + i, (double)0.3f) +
                              (k > 1 ? (double)addend.host[i] : 0);
        must(d->ops->dropout(d->backend, &op, &error));
        expect_operand(d, "values that stay", out, 1e-6);
        op.base = 2;
        assert_int_equal(d->ops->dropout(d->backend, &op, &error), ERROR_ARGUMENT);
    }
}

/* --- Attention --- */

/* rows_per_sample: of chosen queries; 0: all */
static const struct attention_operands attention_cases[] = {
    {1, 1, 64, 1, .causal = true},          {3, 7, 192, 3, .causal = false},
    {2, 65, 128, 2, .causal = true},        {1, 197, 64, 1, .causal = false},
    {1, 577, 64, 1, .causal = false},       {1, 33, 128, 1, .causal = true},
    {2, 65, 160, 2, .causal = false},       {2, 33, 176, 2, .causal = true},
    {1, 70, 208, 2, .causal = false},  /* ViT-H, g and bigG */
    {20, 65, 448, 7, .causal = false}, /* more than stays in the caches */
    {3, 50, 128, 2, .rows_per_sample = 1},  {2, 77, 128, 1, .causal = true, .rows_per_sample = 2},
    {1, 257, 208, 2, .rows_per_sample = 1},
};

/* The row of which a result is: where queries are chosen, of each sample the first one, then the last ones backwards. */
static size_t row_of(const struct attention_operands *c, size_t result)
{
    size_t chosen = c->rows_per_sample;
    return chosen == 0 ? result : result / chosen * c->positions + (c->positions - result % chosen) % c->positions;
}

/* The result of a position among those of its sample; as many as there are or more: it is not asked for. */
static size_t result_of(const struct attention_operands *c, size_t position)
{
    return c->rows_per_sample == 0 ? position : (c->positions - position) % c->positions;
}

struct attended {
    struct attention_operands host;
    size_t results; /* of a sample */
    struct operand qkv, dout, out, dqkv;
};

static struct attended draw_attention(struct device *d, const struct attention_operands *c, float deviation)
{
    struct attended a = {.host = *c, .results = c->rows_per_sample > 0 ? c->rows_per_sample : c->positions};
    int32_t *rows = host_room(d, c->batch * a.results * sizeof *rows);
    for (size_t i = 0; i < c->batch * a.results; i++)
        rows[i] = (int32_t)row_of(c, i);
    a.qkv = draw_operand(d, c->batch * c->positions * 3 * c->width, deviation);
    a.dout = draw_operand(d, c->batch * a.results * c->width, 1.0f);
    a.host.type = a.qkv.type;
    a.host.rows = c->rows_per_sample > 0 ? rows : NULL;
    a.host.qkv = a.qkv.host;
    return a;
}

/* Forward and back. */
static void attend(struct device *d, struct attended *a)
{
    struct attention_operands o = a->host;
    size_t results = o.batch * a->results;
    a->out = blank_operand(d, a->dout.n);
    a->dqkv = blank_operand(d, a->qkv.n);
    o.rows = o.rows != NULL ? to_device(d, o.rows, results * sizeof *o.rows) : NULL;
    o.qkv = a->qkv.device;
    float *lse = room(d, results * o.heads * sizeof *lse);
    must_run(d, attention, .operands = o, .out = a->out.device, .lse = lse);
    must_run(d, attention_backward, .operands = o, .out = a->out.device, .dout = a->dout.device, .lse = lse,
             .dqkv = a->dqkv.device);
}

static void match_attention(struct device *d, const struct attention_operands *c, float deviation, double tolerance)
{
    struct attended a = draw_attention(d, c, deviation);
    attend(d, &a);
    reference_attention(a.out.expected, &a.host);
    reference_attention_backward(a.dqkv.expected, &a.host, a.dout.host);
    expect_operand(d, "attention", a.out, tolerance);
    expect_operand(d, "attention's gradient", a.dqkv, tolerance);
}

DEVICE_TEST_OF(attention_and_back, attention_cases)
{
    match_attention(d, parameters, 1, 5e-6);
}

/* A probability is near 1; scores of ±1000 are themselves rounded to 1e-4. */
DEVICE_TEST(attention_of_scores_far_apart)
{
    match_attention(d, &(struct attention_operands){2, 63, 64, 1, .causal = false}, 12, 1e-4);
}

/* Around the sizes at which kernels change: strips of 16, chunks of 32, 80, 176 and 208 keys. */
TEST(attention_of_all_lengths)
{
    static const size_t lengths[] = {2, 15, 16, 17, 31, 32, 33, 48, 77, 80, 81, 113, 129, 160, 177, 193, 208, 209, 210};
    static const size_t columns[] = {64, 96, 128};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t j = 0; j < 3; j++)
            if ((2 * i + j) % test_every() == 0)
                on_device(attention_and_back_on,
                          &(struct attention_operands){1, lengths[i], columns[j], 1, .causal = (i + j) % 2 == 0});
}

/* A causal position has the same bits however many follow it: what comes after a prompt, and how long the batch's longest
 * one is, must not matter. */
DEVICE_TEST(attention_does_not_know_what_follows)
{
    enum { LONGEST = 230, WIDTH = 128 };
    struct operand qkv = draw_operand(d, LONGEST * 3 * WIDTH, 1.0f), whole = blank_operand(d, LONGEST * WIDTH);
    for (size_t positions = LONGEST, step; positions > 0; positions -= step < positions ? step : positions) {
        step = test_every() * (positions > 212 ? 9 : positions > 82 ? 2 : 1);
        struct operand out = positions == LONGEST ? whole : blank_operand(d, positions * WIDTH);
        struct attention_operands shorter = {1, positions, WIDTH, WIDTH / 64, true, qkv.type, .qkv = qkv.device};
        must_run(d, attention, .operands = shorter, .out = out.device);
        expect_equal_bits(d, "attention of a shorter prompt", out, whole);
    }
}

/* A value of the first head that is not finite, at one position of the last sample: of its query, key, value or dout. */
struct strange {
    const struct attention_operands *c;
    enum { QUERY, KEY, VALUE, DOUT } part;
    size_t position;
    float value;
};

/* Whether the query of a position of the last sample is asked for and sees a key. */
static bool sees(const struct attention_operands *c, size_t query, size_t key)
{
    return (c->rows_per_sample == 0 || result_of(c, query) < c->rows_per_sample) && (!c->causal || key <= query);
}

/* Whether the last sample's queries and keys have nothing of the value, something, or are NaN. */
enum { MOST_POSITIONS = 230 };
struct reach {
    enum { UNTOUCHED, TOUCHED, LOUD } queries[MOST_POSITIONS], keys[MOST_POSITIONS];
};

/* A query is not loud where the value is a key that it gives a score of −∞, and so a weight of 0, and it sees another one; the
 * gradients of a key and its value are what the queries are that see it. */
static struct reach find_reach(const struct strange *s, const float *qkv)
{
    const struct attention_operands *c = s->c;
    bool own = s->part == QUERY || s->part == DOUT;
    struct reach r = {0};
    for (size_t i = 0; i < c->positions; i++) {
        const float *row = qkv + ((c->batch - 1) * c->positions + i) * 3 * c->width;
        bool alone = c->causal && i == 0, weightless = s->part == KEY && !alone && row[1] * s->value < 0;
        if (own ? i == s->position && sees(c, i, 0) : sees(c, i, s->position))
            r.queries[i] = weightless ? TOUCHED : LOUD;
        for (size_t j = 0; j < c->positions; j++)
            if (sees(c, i, j) && r.queries[i] > r.keys[j])
                r.keys[j] = r.queries[i];
    }
    return r;
}

/* A row as before; of one that is touched all but the first head, which shows it where it has to. */
static void check_row(const struct strange *s, const char *what, size_t position, bool touched, bool shows,
                      const float *found, const float *before)
{
    size_t columns = s->c->width / s->c->heads, first = touched ? columns : 0;
    bool hidden = shows;
    for (size_t j = 0; j < columns; j++)
        hidden = hidden && isfinite(found[j]);
    if (hidden || memcmp(found + first, before + first, (s->c->width - first) * sizeof *found) != 0)
        fail_msg("%s of position %zu %s %g in part %d of position %zu", what, position, hidden ? "hides" : "knows of",
                 (double)s->value, (int)s->part, s->position);
}

/* The hosts of before.out and before.dqkv hold what they were. */
static void check_strange(struct device *d, struct attended before, const struct strange *s)
{
    static const char *const gradients[] = {"dq", "dk", "dv"};
    const struct attention_operands *c = s->c;
    struct attended a = before;
    size_t sample = c->batch - 1, row = sample * c->positions + s->position,
           result = sample * a.results + result_of(c, s->position);
    struct operand *operand = s->part == DOUT ? &a.dout : &a.qkv;
    float *place = &operand->host[(s->part == DOUT ? result : row * 3 + s->part) * c->width + 1], kept = *place;
    *place = s->value;
    operand_renew(d, operand);
    *place = kept;
    attend(d, &a);
    const float *out = operand_values(d, a.out), *dqkv = operand_values(d, a.dqkv);
    struct reach reach = find_reach(s, a.qkv.host);
    for (size_t i = 0; i < c->batch * a.results; i++) {
        size_t position = row_of(c, i) % c->positions;
        bool touched = i / a.results == sample && s->part != DOUT && reach.queries[position] > UNTOUCHED,
             loud = touched && reach.queries[position] == LOUD;
        check_row(s, "out", position, touched, loud, out + i * c->width, before.out.host + i * c->width);
        if (!loud && !isfinite(out[i * c->width + 1]))
            fail_msg("out of position %zu is not finite, although %g in part %d of position %zu has no weight",
                     position, (double)s->value, (int)s->part, s->position);
    }
    for (size_t i = 0; i < 3 * c->batch * c->positions; i++) {
        size_t position = i / 3 % c->positions, part = i % 3;
        int reached = i / 3 / c->positions < sample ? UNTOUCHED
                      : part == QUERY               ? reach.queries[position]
                                                    : reach.keys[position];
        check_row(s, gradients[part], position, reached > UNTOUCHED,
                  reached == LOUD && !(part == VALUE && s->part == VALUE), dqkv + i * c->width,
                  before.dqkv.host + i * c->width);
    }
}

static const struct attention_operands attends_to_strange_cases[] = {
    {1, 2, 128, 2, .causal = true},   {2, 50, 128, 2, .rows_per_sample = 1},
    {2, 39, 128, 2, .causal = true},  {2, 33, 128, 2, .causal = true, .rows_per_sample = 1},
    {1, 77, 128, 2, .causal = true},  {1, 77, 128, 2, .causal = true, .rows_per_sample = 2},
    {1, 230, 160, 2, .causal = true}, {1, 65, 256, 2, .causal = true},
};

/* What a query may not see it does not know of, also where 0 times that would be NaN; what it sees, it does not hide. */
DEVICE_TEST_OF(attention_does_not_know_what_it_does_not_see, attends_to_strange_cases)
{
    const struct attention_operands *c = parameters;
    static const float values[] = {NAN, INFINITY, -INFINITY};
    const size_t positions[] = {0, c->positions / 2, c->positions - 1};
    struct attended a = draw_attention(d, c, 1);
    attend(d, &a);
    a.out.host = operand_values(d, a.out);
    a.dqkv.host = operand_values(d, a.dqkv);
    for (size_t i = 0; i < 4 * 9; i++) {
        struct strange s = {c, i / 9, positions[i / 3 % 3], values[i % 3]};
        if ((i + i / 3 + i / 9) % test_every() == 0 && (s.part != DOUT || sees(c, s.position, 0)))
            check_strange(d, a, &s);
    }
}

static const struct attention_operands attends_without_weight_cases[] = {
    {1, 2, 128, 2, .causal = true}, {2, 39, 128, 2, .causal = true},   {1, 77, 128, 2, .causal = false},
    {1, 3, 128, 2, .causal = true}, {1, 197, 128, 2, .causal = false}, {1, 230, 160, 2, .causal = true},
};

/* The last query and the second key are finite, but their product is −∞: it has the weight 0. Where other products have such
 * factors (the first column of dq and dk), results are as large as those. */
DEVICE_TEST_OF(attention_gives_minus_infinity_no_weight, attends_without_weight_cases)
{
    const struct attention_operands *c = parameters;
    struct attended a = draw_attention(d, c, 1);
    for (size_t i = 0; i < 2 * c->batch * c->positions; i++)
        a.qkv.host[(i / 2 * 3 + i % 2) * c->width] = 0;
    a.qkv.host[(c->positions - 1) * 3 * c->width] = 1e30f;
    a.qkv.host[(3 + 1) * c->width] = -1e30f;
    operand_renew(d, &a.qkv);
    attend(d, &a);
    a.dqkv.host = operand_values(d, a.dqkv);
    for (size_t i = 0; i < 2 * c->batch * c->positions; i++) {
        assert_true(isfinite(a.dqkv.host[(i / 2 * 3 + i % 2) * c->width]));
        a.dqkv.host[(i / 2 * 3 + i % 2) * c->width] = 0;
    }
    operand_renew(d, &a.dqkv);
    reference_attention(a.out.expected, &a.host);
    reference_attention_backward(a.dqkv.expected, &a.host, a.dout.host);
    for (size_t i = 0; i < 2 * c->batch * c->positions; i++)
        a.dqkv.expected[(i / 2 * 3 + i % 2) * c->width] = 0;
    expect_operand(d, "attention with a score of -infinity", a.out, 5e-6);
    expect_operand(d, "its gradient", a.dqkv, 5e-6);
}

/* All of it first: what that leaves in a worker's rooms must not come into fewer rows. Queries and keys of the first columns are
 * so large that their products are infinite; values are as ever. */
DEVICE_TEST(attention_does_not_hide_overflows)
{
    enum { WIDTH = 128 };
    static const size_t cases[][2] = {{31, 128}, {17, 64}, {37, 64}}; /* positions, columns */
    for (size_t k = 0; k < 3; k++) {
        const struct attention_operands c = {8, cases[k][0], WIDTH, WIDTH / 64, .causal = false};
        struct attended a = draw_attention(d, &c, 1);
        for (size_t i = 0; i < a.qkv.n; i++)
            if (i % WIDTH < cases[k][1] && i / WIDTH % 3 != VALUE)
                a.qkv.host[i] = 1e30f;
        operand_renew(d, &a.qkv);
        attend(d, &a);
        const float *out = operand_values(d, a.out), *dqkv = operand_values(d, a.dqkv);
        for (size_t i = 0; i < a.out.n; i++)
            assert_true(i % WIDTH < cases[k][1] ? isnan(out[i]) : isfinite(out[i]));
        for (size_t i = 0; i < a.dqkv.n; i++)
            assert_true(i % WIDTH < cases[k][1] ? isnan(dqkv[i]) : isfinite(dqkv[i]));
    }
}
