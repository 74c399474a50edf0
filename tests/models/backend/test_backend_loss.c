/* Losses, predictions, weighted sums, and the table itself. */
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"

#include <math.h>
#include <string.h>

struct loss_case {
    size_t rows, classes;
    float deviation, smoothing;
    bool mixed;
};

static const struct loss_case loss_cases[] = {
    {1, 1, 1, 0, false},    {7, 63, 1, 0.2f, false}, {65, 7, 100, 0.2f, false},    {63, 577, 3, 0, false},
    {7, 63, 1, 0.2f, true}, {65, 7, 2, 0, true},     {197, 65, 1e4f, 0.1f, false}, /* logits far beyond exp's range */
};

/* weight · mean over rows of −Σ targets · log softmax(logits / temperature); its gradient += … */
static double reference_cross_entropy(double *gradient, struct matrix logits, const double *targets, double temperature,
                                      double weight)
{
    double loss = 0, share = weight / (double)logits.rows;
    for (size_t i = 0; i < logits.rows; i++) {
        double most = -INFINITY, total = 0;
        for (size_t c = 0; c < logits.columns; c++)
            most = fmax(most, reference_at(logits, i, c) / temperature);
        for (size_t c = 0; c < logits.columns; c++)
            total += exp(reference_at(logits, i, c) / temperature - most);
        for (size_t c = 0; c < logits.columns; c++) {
            double log_p = reference_at(logits, i, c) / temperature - most - log(total),
                   target = targets[i * logits.columns + c];
            loss -= share * target * log_p;
            gradient[i * logits.columns + c] += share * (exp(log_p) - target) / temperature;
        }
    }
    return loss;
}

/* Of losses with and without a gradient, where there was 1 before. */
static void expect_losses(struct device *d, const float *losses, double loss)
{
    expect_close(d, "loss, with and without gradient", losses, (const double[]){1 + loss, 1 + loss}, 2, 2e-6);
}

DEVICE_TEST_OF(cross_entropy_and_its_gradient, loss_cases)
{
    const struct loss_case *c = parameters;
    struct operand logits = draw(d, c->rows * c->classes, c->deviation), dlogits = draw(d, logits.n, 1.0f);
    int32_t labels[200] = {0}, others[200] = {0};
    float shares[200] = {0}, *losses = ones(d, 2), *right = ones(d, 2);
    double expected[2] = {1, 1}; /* without gradient they are not asked for */
    double *targets = doubles(d, NULL, logits.n), smoothing = (double)c->smoothing;
    for (size_t i = 0; i < logits.n; i++)
        targets[i] = smoothing / (double)c->classes;
    for (size_t i = 0; i < c->rows; i++) {
        labels[i] = (int32_t)((7 * i + 3) % c->classes);
        others[i] = (int32_t)(5 * i % c->classes); /* sometimes the same */
        shares[i] = (float)(i % 5) / 4.0f;
        double share = c->mixed ? (double)shares[i] : 1;
        targets[i * c->classes + (size_t)labels[i]] += (1 - smoothing) * share;
        targets[i * c->classes + (size_t)others[i]] += (1 - smoothing) * (1 - share);
        size_t best = 0;
        for (size_t k = 1; k < c->classes; k++)
            best = logits.host[i * c->classes + k] > logits.host[i * c->classes + best] ? k : best;
        expected[0] += best == (size_t)(share < 0.5 ? others[i] : labels[i]);
        expected[1] += 1;
    }
    double loss = reference_cross_entropy(dlogits.expected, host_rows(logits, c->classes), targets, 1, 0.7);
    const int32_t *device_labels = to_device(d, labels, sizeof labels);
    for (int alone = 0; alone < 2; alone++)
        must_run(d, cross_entropy, .logits = device_rows(logits, c->classes),
                 .dlogits = matrix_rows(alone ? NULL : dlogits.device, c->rows, c->classes), .labels = device_labels,
                 .others = c->mixed ? to_device(d, others, sizeof others) : NULL,
                 .shares = c->mixed ? to_device(d, shares, sizeof shares) : NULL, .smoothing = c->smoothing,
                 .weight = 0.7f, .loss = losses + alone, .right = alone ? NULL : right);
    expect_losses(d, losses, loss);
    expect_close(d, "right ones and rows", right, expected, 2, 0);
    expect_operand(d, "gradient of the logits", dlogits, 2e-6);
}

DEVICE_TEST_OF(soft_targets_and_their_gradient, loss_cases)
{
    const struct loss_case *c = parameters;
    size_t n = c->rows * c->classes;
    struct operand logits = draw(d, n, 3.0f), targets = draw(d, n, 3.0f), dlogits = draw(d, n, 0.01f);
    float *losses = ones(d, 2);
    for (size_t i = 0; i < n; i++)
        targets.expected[i] /= 2;
    for (double *row = targets.expected; row < targets.expected + n; row += c->classes)
        reference_softmax(row, row, c->classes);
    double loss = reference_cross_entropy(dlogits.expected, host_rows(logits, c->classes), targets.expected, 2, 4);
    for (int alone = 0; alone < 2; alone++)
        must_run(d, soft_cross_entropy, .logits = device_rows(logits, c->classes),
                 .targets = device_rows(targets, c->classes),
                 .dlogits = matrix_rows(alone ? NULL : dlogits.device, c->rows, c->classes), .temperature = 2,
                 .weight = 4, .loss = losses + alone);
    expect_losses(d, losses, loss);
    expect_operand(d, "gradient of the logits", dlogits, 2e-6);
}

/* Of vectors: around a register, a block of threads, and what one thread takes. */
static const size_t sizes[] = {1, 7, 63, 65, 511, 513, 4097, 40001};

DEVICE_TEST_OF(penalties_pull_towards_an_anchor, sizes)
{
    size_t n = *(const size_t *)parameters;
    struct operand x = draw(d, n, 1.0f), anchor = draw(d, n, 1.0f), importance = draw(d, n, 1.0f),
                   gradients = draw(d, n, 1.0f);
    float *losses = ones(d, 2);
    double totals[2] = {1, 1};
    for (int weighted = 0; weighted < 2; weighted++) {
        for (size_t i = 0; i < n; i++) {
            double moved = (double)x.host[i] - (double)anchor.host[i], f = weighted ? (double)importance.host[i] : 1;
            totals[weighted] += 0.25 * f * moved * moved;
            gradients.expected[i] += 0.5 * f * moved;
        }
        must_run(d, penalty, .n = n, .values = x.device, .anchor = anchor.device,
                 .importance = weighted ? importance.device : NULL, .strength = 0.25f, .gradients = gradients.device,
                 .loss = losses + weighted);
    }
    expect_close(d, "penalty, without and with importance", losses, totals, 2, 2e-6);
    expect_operand(d, "gradient of the penalty", gradients, 2e-6);
}

/* Of a row with what is no number there is none. */
DEVICE_TEST(highest_logit_wins_and_ties_go_low)
{
    enum { ROWS = 9, COLUMNS = 65 };
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    struct operand logits = draw(d, ROWS * COLUMNS, 1.0f);
    float *z = logits.host;
    z[0 * COLUMNS + 64] = 3e38f;                   /* the last one */
    z[1 * COLUMNS + 33] = z[1 * COLUMNS + 34] = 9; /* equal: the lower index */
    for (size_t j = 0; j < COLUMNS; j++) {
        z[2 * COLUMNS + j] = -3;                       /* all equal */
        z[3 * COLUMNS + j] = j == 5 ? -1e30f : -3e38f; /* all far below zero */
    }
    z[4 * COLUMNS + 7] = 3e38f;
    for (size_t i = 0; i < 4; i++)
        z[(5 + i) * COLUMNS + 16 * i] = bad[i];
    int32_t *best = room(d, ROWS * sizeof *best);
    float *device = to_device(d, z, ROWS * COLUMNS * sizeof *z);
    must_run(d, argmax, .x = matrix_rows(device, ROWS, COLUMNS), .out = best);
    expect_integers(d, "predictions", best, (const int32_t[ROWS]){64, 33, 0, 5, 7, -1, -1, -1, -1}, ROWS);
}

static const size_t searched[] = {1, 7, 63, 65, 40001, 700001};

DEVICE_TEST_OF(what_is_not_finite_is_found, searched)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    struct operand x = draw(d, *(const size_t *)parameters, 1.0f);
    x.host[0] = 3.4e38f;
    for (size_t b = 0; b < 5; b++) {
        size_t at = b * (x.n - 1) / 4;
        float kept = x.host[at];
        if (b < 4)
            x.host[at] = bad[b];
        int32_t *found = to_device(d, (const int32_t[]){0, 1, 7}, 3 * sizeof *found);
        const float *values = to_device(d, x.host, x.n * sizeof *values);
        for (int i = 0; i < 2; i++)
            must_run(d, find_not_finite, .n = x.n, .values = values, .found = found + i);
        expect_integers(d, "found", found, (const int32_t[]){b < 4, 1, 7}, 3);
        x.host[at] = kept;
    }
}

/* Segments of 5, 40000, 1 and 3 values, of which the second and the last are looked at. */
DEVICE_TEST(only_what_is_updated_is_looked_at)
{
    enum { SEGMENTS = 4, N = 40009 };
    const uint64_t offsets[SEGMENTS + 1] = {0, 5, 40005, 40006, N};
    const int32_t flag[SEGMENTS] = {2, 0, 1, 3}, flags[SEGMENTS] = {1, 0, 0, 7},
                  cases[][2] = {{0, 0}, {4, 0}, {5, 1}, {40004, 1}, {40005, 0}, {40006, 1}, {N - 1, 1}}; /* at, found */
    struct operand x = draw(d, N, 1.0f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float *place = &x.host[cases[i][0]], kept = *place;
        int32_t *found = room(d, sizeof *found);
        *place = NAN;
        must_run(d, find_not_finite, .n = N, .segments = SEGMENTS, .offsets = to_device(d, offsets, sizeof offsets),
                 .flag = to_device(d, flag, sizeof flag), .flags = to_device(d, flags, sizeof flags),
                 .values = to_device(d, x.host, N * sizeof(float)), .found = found);
        expect_integers(d, "found", found, &cases[i][1], 1);
        *place = kept;
    }
}

DEVICE_TEST(steps_that_are_held_leave_the_counts_before)
{
    enum { FIRST = 700, SECOND = 3 };
    int32_t now[FIRST + SECOND], before[FIRST + SECOND];
    for (int32_t i = 0; i < FIRST + SECOND; i++) {
        now[i] = 3 * i + 1;
        before[i] = 2 * i;
    }
    int32_t *counts = to_device(d, now, sizeof now), *kept = to_device(d, before, sizeof before);
    struct step_guard *guard = to_device(d, &(struct step_guard){0}, sizeof *guard);
    struct skip_step op = {.guard = guard,
                           .state = to_device(d, &(struct step_state){.step = 40}, sizeof(struct step_state)),
                           .lists = {{FIRST, counts, kept}, {SECOND, counts + FIRST, kept + FIRST}}};
    must(d->ops->skip_step(d->backend, &op, &error));
    expect_integers(d, "counts of a step that counts", counts, now, FIRST + SECOND);
    must(d->ops->upload(d->backend, &guard->skip, (const int32_t[]){1}, sizeof(int32_t), &error));
    must(d->ops->skip_step(d->backend, &op, &error));
    op.state = to_device(d, &(struct step_state){.step = 45}, sizeof(struct step_state));
    must(d->ops->skip_step(d->backend, &op, &error));
    expect_integers(d, "counts of a step that was held", counts, before, FIRST + SECOND);
    expect_integers(d, "guard", guard, (const int32_t[]){1, 2, 41}, 3);
}

DEVICE_TEST_OF(squared_error_and_its_gradient, loss_cases)
{
    const struct loss_case *c = parameters;
    size_t n = c->rows * c->classes;
    struct operand x = draw(d, n, 1.0f), y = draw(d, n, 1.0f), dx = blank(d, n), errors = blank(d, c->rows),
                   again = blank(d, c->rows);
    for (size_t i = 0; i < n; i++) {
        double difference = (double)x.host[i] - (double)y.host[i];
        errors.expected[i / c->classes] += difference * difference / (double)c->classes;
        dx.expected[i] = 0.125 * 2 * difference;
    }
    for (int alone = 0; alone < 2; alone++)
        must_run(d, squared_error, .x = device_rows(x, c->classes), .y = device_rows(y, c->classes),
                 .dx = matrix_rows(alone ? NULL : dx.device, c->rows, c->classes), .scale = 0.125f,
                 .errors = alone ? again.device : errors.device);
    expect_operand(d, "squared errors", errors, 1e-6);
    expect_operand(d, "their gradient", dx, 1e-6);
    again.expected = errors.expected;
    expect_operand(d, "squared errors without gradient", again, 1e-6);
}

DEVICE_TEST_OF(weighted_sums_are_exact, sizes)
{
    size_t n = *(const size_t *)parameters;
    struct weighted_sum sum = {.count = WEIGHTED_SUM_INPUTS, .n = n};
    struct operand input = {0}, total = blank(d, n);
    for (size_t k = 0; k < WEIGHTED_SUM_INPUTS; k++) {
        input = draw(d, n, 1.0f);
        sum.inputs[k] = input.device;
        sum.weights[k] = 0.1f * (float)(k + 1);
        for (size_t i = 0; i < n; i++)
            total.expected[i] += (double)sum.weights[k] * (double)input.host[i];
    }
    sum.out = total.device = input.device; /* may be one of the inputs */
    must(d->ops->weighted_sum(d->backend, &sum, &error));
    expect_operand(d, "weighted sum of many", total, 1e-7);

    struct operand a = draw(d, n, 1.0f), b = draw(d, n, 1.0f), mean = blank(d, n);
    for (size_t count = 2; count <= 3; count++) {
        float weight = count == 2 ? 0.5f : 1;
        for (size_t i = 0; i < n; i++)
            mean.host[i] = (float)(count == 2 ? 0.5 * ((double)a.host[i] + (double)b.host[i])
                                              : ((double)a.host[i] + (double)b.host[i] + (double)b.host[i]) / 3);
        must_run(d, weighted_sum, .count = count, .n = n, .inputs = {a.device, b.device, b.device},
                 .weights = {weight, weight, weight}, .divisor = count == 2 ? 0 : 3, .out = mean.device);
        expect_host_bits(d, "mean", mean);
    }
}

/* Expert by expert, as the formula says; without the last two, and with none to average with. */
DEVICE_TEST_OF(experts_that_are_free_are_averaged, sizes)
{
    enum { EXPERTS = 5 };
    static const int32_t frozen[3][EXPERTS] = {{0}, {0, 1, 0, 0, 1}, {1, 1, 0, 1, 1}};
    size_t n = *(const size_t *)parameters;
    for (size_t set = 0; set < 3; set++) {
        struct operand values = draw(d, EXPERTS * n, 1.0f);
        double share = (double)0.3f;
        size_t free_experts = set == 0 ? 5 : set == 1 ? 3 : 1;
        for (size_t at = 0; at < values.n; at++) {
            double others = 0;
            for (size_t f = 0; f < EXPERTS; f++)
                others += f != at / n && !frozen[set][f] ? (double)values.host[f * n + at % n] : 0;
            if (free_experts > 1 && !frozen[set][at / n])
                values.expected[at] = (1 - share) * values.expected[at] + share / (double)(free_experts - 1) * others;
        }
        must_run(d, average_experts, .experts = EXPERTS, .n = n, .share = 0.3f, .values = values.device,
                 .frozen = set == 0 ? NULL : to_device(d, frozen[set], sizeof frozen[set]));
        expect_operand(d, "averaged experts", values, 1e-7);
        for (size_t e = 0; e < EXPERTS; e++)
            if (frozen[set][e] || free_experts < 2)
                expect_floats(d, "an expert that stays", values.device + e * n, values.host + e * n, n);
    }
}

DEVICE_TEST_OF(products_are_element_by_element, sizes)
{
    size_t n = *(const size_t *)parameters;
    struct operand a = draw(d, n, 1.0f), b = draw(d, n, 1.0f), out = blank(d, n), sum = draw(d, n, 1.0f);
    const struct step_guard *held = to_device(d, &(struct step_guard){.skip = 1}, sizeof *held);
    for (size_t i = 0; i < n; i++) {
        out.expected[i] = (double)a.host[i] * (double)b.host[i];
        sum.expected[i] += (double)a.host[i] * (double)a.host[i];
    }
    must_run(d, multiply, .n = n, .a = a.device, .b = b.device, .out = out.device);
    expect_operand(d, "products", out, 1e-7);
    must_run(d, multiply, .n = n, .a = a.device, .b = a.device, .out = sum.device, .accumulate = true);
    expect_operand(d, "squares that were added", sum, 2e-7);
    must_run(d, multiply, .n = n, .a = a.device, .b = b.device, .out = sum.device, .guard = held);
    expect_operand(d, "sums while the step is held", sum, 2e-7);
}

DEVICE_TEST(memory_is_copied_and_cleared)
{
    struct operand a = draw(d, 65, 1.0f), b = blank(d, 65);
    must(d->ops->copy(d->backend, b.device, a.device, 64 * sizeof(float), &error));
    memcpy(b.host, a.host, 64 * sizeof(float));
    expect_host_bits(d, "copy", b);
    must(d->ops->zero(d->backend, b.device, 63 * sizeof(float), &error));
    memset(b.host, 0, 63 * sizeof(float));
    expect_host_bits(d, "zero", b);
}

DEVICE_TEST(tables_are_complete_and_names_known)
{
    struct backend *none = NULL;
    const void *operation = NULL; /* each as large as a pointer, and so is the name */
    for (size_t at = 0; at < sizeof *d->ops; at += sizeof operation) {
        memcpy(&operation, (const char *)d->ops + at, sizeof operation);
        assert_non_null(operation);
    }
    must_refuse(backend_open(&none, &(struct backend_settings){.name = "tpu"}, &error), ERROR_ARGUMENT, "\"tpu\"");
    backend_close(NULL);
}
