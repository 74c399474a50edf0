/* gemm, grouped_gemm and column_sum against plain loops. */
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"

#include <string.h>

#include "models/block.h"

struct product_case {
    size_t m, n, k;
};

static const struct product_case product_cases[] = {
    {1, 1, 1},       {7, 63, 65},  {65, 7, 197},    {63, 1, 7},   {1, 577, 65},
    {197, 65, 577},  {577, 63, 1}, {300, 1100, 17}, {64, 16, 24}, /* eights whose rows are not aligned */
    {30, 1100, 577},                                              /* a large operand */
};

/* Operands that are large make a difference in f32 alone. */
static bool is_like_others(const struct device *d, const struct product_case *c)
{
    return c->n * c->k > 1 << 19 && d->backend->precision == PRECISION_BF16;
}

/* Each matrix is a slice of a wider one, so that strides matter. Left operands are stored as operands, right ones, as
 * weights are, in f32: then the reference has them rounded all the same. */
struct slice {
    struct matrix host, device;
};

static struct slice draw_slice(struct device *d, size_t rows, size_t columns)
{
    struct operand all = draw_operand(d, rows * (columns + 3), 1.0f);
    return (struct slice){matrix_columns(matrix_rows(all.host, rows, columns + 3), 2, columns),
                          matrix_columns(operand_rows(d, all.device, rows, columns + 3), 2, columns)};
}

static struct operand draw_weights(struct device *d, size_t n)
{
    struct operand weights = draw_operand(d, n, 1.0f);
    weights.device = to_device(d, weights.host, n * sizeof(float));
    return weights;
}

static struct slice draw_weight_slice(struct device *d, size_t rows, size_t columns)
{
    struct operand all = draw_weights(d, rows * (columns + 3));
    return (struct slice){matrix_columns(matrix_rows(all.host, rows, columns + 3), 2, columns),
                          matrix_columns(matrix_rows(all.device, rows, columns + 3), 2, columns)};
}

DEVICE_TEST_OF(products_of_all_shapes, product_cases)
{
    const struct product_case *c = parameters;
    if (is_like_others(d, c))
        return;
    for (int transposes = 0; transposes < 4; transposes++) {
        bool ta = transposes & 1, tb = transposes & 2;
        struct slice a = ta ? draw_slice(d, c->k, c->m) : draw_slice(d, c->m, c->k);
        struct slice b = tb ? draw_weight_slice(d, c->n, c->k) : draw_weight_slice(d, c->k, c->n);
        struct operand out = blank(d, c->m * c->n), sum = draw(d, c->m * c->n, 1.0f);
        double *expected = doubles(d, NULL, c->m * c->n), *added = doubles(d, sum.host, c->m * c->n);
        reference_product(expected, a.host, ta, b.host, tb);
        struct gemm gemm = {.a = a.device,
                            .b = b.device,
                            .out = matrix_rows(out.device, c->m, c->n),
                            .transpose_a = ta,
                            .transpose_b = tb};
        must(d->ops->gemm(d->backend, &gemm, &error));
        expect_close(d, "product", out.device, expected, c->m * c->n, 3e-6);

        gemm.out = matrix_rows(sum.device, c->m, c->n);
        gemm.accumulate = true;
        gemm.scale = -2.5f;
        must(d->ops->gemm(d->backend, &gemm, &error));
        for (size_t i = 0; i < c->m * c->n; i++)
            added[i] += -2.5 * expected[i];
        expect_close(d, "accumulated, scaled product", sum.device, added, c->m * c->n, 3e-6);
    }
}

static const enum activation activations[] = {ACTIVATION_NONE, ACTIVATION_QUICK_GELU, ACTIVATION_GELU,
                                              ACTIVATION_RELU, ACTIVATION_SIGMOID,    ACTIVATION_GELU_TANH};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

static const struct product_case epilogue_cases[] = {{65, 63, 7}, {1, 197, 65}, {3, 1100, 577}};

DEVICE_TEST_OF(bias_addend_activation_and_back, epilogue_cases)
{
    const struct product_case *c = parameters;
    size_t n = c->m * c->n;
    if (is_like_others(d, c))
        return;
    for (size_t kind = 0; kind < ACTIVATIONS; kind++)
        for (int in_place = 0; in_place < 2; in_place++) {
            struct slice a = draw_slice(d, c->m, c->k), b = draw_slice(d, c->n, c->k);
            size_t at = (size_t)in_place; /* of the bias: aligned, and not */
            struct operand bias = draw(d, at + c->n, 2.0f), addend = draw_operand(d, n, 2.0f),
                           before = blank_operand(d, n), out = blank_operand(d, n);
            double *linear = doubles(d, NULL, n), *active = doubles(d, NULL, n);
            reference_product(linear, a.host, false, b.host, true);
            for (size_t i = 0; i < n; i++) {
                linear[i] = 0.25 * linear[i] + (double)bias.host[at + i % c->n] + (double)addend.host[i];
                active[i] = reference_activation(activations[kind], linear[i]);
            }
            struct matrix target = operand_rows(d, in_place ? addend.device : out.device, c->m, c->n);
            must_run(d, gemm, .a = a.device, .b = b.device, .transpose_b = true, .scale = 0.25f,
                     .bias = (float *)bias.device + at, .addend = operand_rows(d, addend.device, c->m, c->n),
                     .activation = activations[kind], .before = operand_rows(d, before.device, c->m, c->n),
                     .out = target);
            expect_close_operand(d, "before the activation", before.device, linear, n, 3e-6);
            expect_close_operand(d, "after the activation", target.data, active, n, 3e-6);

            struct operand dx = blank_operand(d, n);
            reference_product(linear, a.host, false, b.host, true);
            const float *x = operand_from_device(d, before.device, n);
            for (size_t i = 0; i < n; i++)
                active[i] = linear[i] * reference_slope(activations[kind], (double)x[i]);
            must_run(d, gemm, .a = a.device, .b = b.device, .transpose_b = true, .backward = true,
                     .activation = activations[kind], .before = operand_rows(d, before.device, c->m, c->n),
                     .out = operand_rows(d, dx.device, c->m, c->n));
            expect_close_operand(d, "product through an activation", dx.device, active, n, 3e-6);
        }
}

/* The products of terms come before the bias and the activation. Terms of whole strips, two of them over the same columns and
 * across tiles, and terms of any columns. */
static const struct terms_case {
    size_t firsts[3], widths[3];
} terms_cases[] = {{{0, 496, 480}, {480, 64, 608}}, {{0, 497, 3}, {480, 100, 7}}};

DEVICE_TEST_OF(products_with_terms, terms_cases)
{
    enum { ROWS = 197, DEPTH = 65, COLUMNS = 1100, RANK = 12 };
    const struct terms_case *c = parameters;
    size_t n = ROWS * COLUMNS;
    struct slice a = draw_slice(d, ROWS, DEPTH), b = draw_weight_slice(d, COLUMNS, DEPTH), left, right;
    struct operand bias = draw(d, COLUMNS, 2.0f), before = draw_operand(d, n, 1.0f), out = blank_operand(d, n);
    double *expected = doubles(d, NULL, n), *product = doubles(d, NULL, n), *active = doubles(d, NULL, n);
    struct gemm_term terms[3];
    reference_product(expected, a.host, false, b.host, true);
    for (size_t t = 0; t < 3; t++) {
        size_t first = c->firsts[t], width = c->widths[t];
        left = draw_weight_slice(d, ROWS, RANK);
        right = draw_weight_slice(d, RANK, width);
        terms[t] = (struct gemm_term){left.device, right.device, first, t == 1 ? -2.5f : 1.0f};
        reference_product(product, left.host, false, right.host, false);
        for (size_t i = 0; i < ROWS * width; i++)
            expected[i / width * COLUMNS + first + i % width] += (double)terms[t].scale * product[i];
    }
    for (size_t i = 0; i < n; i++)
        active[i] = expected[i] * reference_slope(ACTIVATION_GELU, (double)before.host[i]);
    struct gemm gemm = {.a = a.device,
                        .b = b.device,
                        .transpose_b = true,
                        .bias = bias.device,
                        .out = operand_rows(d, out.device, ROWS, COLUMNS),
                        .terms = terms,
                        .terms_count = 3};
    must(d->ops->gemm(d->backend, &gemm, &error));
    for (size_t i = 0; i < n; i++)
        expected[i] += (double)bias.host[i % COLUMNS];
    expect_close_operand(d, "product with terms", out.device, expected, n, 3e-6);

    gemm.bias = NULL;
    gemm.backward = true;
    gemm.activation = ACTIVATION_GELU;
    gemm.before = operand_rows(d, before.device, ROWS, COLUMNS);
    must(d->ops->gemm(d->backend, &gemm, &error));
    expect_close_operand(d, "product with terms through an activation", out.device, active, n, 3e-6);
}

/* A row's bits must not depend on how many rows came with it, nor which. The CPU alone promises it: a GPU's library picks its
 * algorithm by the size of the product. */
enum { BATCH = 450 };

static const struct product_case batch_cases[] = {{0, 128, 128}, {0, 7, 65},     {0, 1100, 512},
                                                  {0, 1030, 17}, {0, 1030, 577}, {0, 1, 1}};
static const size_t batch_parts[][2] = {{0, 1}, {449, 1}, {3, 7}, {1, 64}, {100, 65}, {190, 192}, {5, 193}, {0, 449}};

static struct gemm part_of(const struct gemm *whole, const float *start, size_t first, size_t count,
                           struct operand *out)
{
    struct gemm part = *whole;
    size_t columns = whole->out.columns;
    part.a.data = (char *)whole->a.data + first * whole->a.stride * tensor_type_size(whole->a.type);
    part.a.rows = count;
    part.out = matrix_rows(out->device, count, columns);
    part.addend = start != NULL ? part.out : (struct matrix){0};
    return part;
}

DEVICE_TEST_OF(rows_do_not_depend_on_their_batch, batch_cases)
{
    const struct product_case *c = parameters;
    if (strcmp(d->ops->name, "cpu") != 0 || is_like_others(d, c))
        return;
    for (int kind = 0; kind < 4; kind++) {
        bool transpose = kind & 1, add = kind & 2;
        struct slice a = draw_slice(d, BATCH, c->k);
        struct slice b = transpose ? draw_slice(d, c->n, c->k) : draw_slice(d, c->k, c->n);
        struct operand bias = draw(d, c->n, 1.0f), start = draw(d, BATCH * c->n, 1.0f), out = blank(d, BATCH * c->n);
        struct gemm whole = {.a = a.device,
                             .b = b.device,
                             .transpose_b = transpose,
                             .bias = bias.device,
                             .activation = ACTIVATION_QUICK_GELU};
        whole.out = matrix_rows(add ? start.device : out.device, BATCH, c->n);
        whole.addend = add ? whole.out : (struct matrix){0};
        must(d->ops->gemm(d->backend, &whole, &error));
        const float *expected = from_device(d, whole.out.data, BATCH * c->n * sizeof *expected);
        for (size_t i = 0; i < sizeof batch_parts / sizeof *batch_parts; i++) {
            size_t first = batch_parts[i][0], count = batch_parts[i][1];
            const float *from = add ? start.host + first * c->n : NULL;
            struct operand own = blank(d, count * c->n);
            struct gemm part = part_of(&whole, from, first, count, &own);
            if (add)
                must(d->ops->upload(d->backend, own.device, from, count * c->n * sizeof *from, &error));
            must(d->ops->gemm(d->backend, &part, &error));
            expect_floats(d, "rows in a smaller batch", own.device, expected + first * c->n, count * c->n);
        }
    }
}

struct grouped_case {
    size_t groups, rows_per_slot, n, k;
    int32_t slots[6]; /* of each group */
};

static const struct grouped_case grouped_cases[] = {
    {1, 1, 1, 1, {1}},
    {4, 7, 63, 65, {0, 3, 0, 2}},          /* empty experts, the first among them */
    {3, 197, 65, 7, {0, 4, 0}},            /* all samples on one expert */
    {6, 1, 7, 63, {5, 0, 70, 1, 0, 300}},  /* more rows than a tile has */
    {6, 1, 7, 9, {63, 1, 64, 65, 0, 128}}, /* groups that end at the edges of tiles */
    {2, 5, 64, 100, {0, 0}},               /* none at all */
};

static size_t list_offsets(const struct grouped_case *c, int32_t *offsets)
{
    offsets[0] = 0;
    for (size_t e = 0; e < c->groups; e++)
        offsets[e + 1] = offsets[e] + c->slots[e];
    return (size_t)offsets[c->groups] * c->rows_per_slot;
}

static size_t group_of(const struct grouped_case *c, const int32_t *offsets, size_t row)
{
    size_t e = 0;
    while (row >= (size_t)offsets[e + 1] * c->rows_per_slot)
        e++;
    return e;
}

DEVICE_TEST_OF(products_by_expert, grouped_cases)
{
    const struct grouped_case *c = parameters;
    int32_t offsets[7];
    size_t rows = list_offsets(c, offsets), spare = rows + c->rows_per_slot,
           size = tensor_type_size(backend_operand_type(d->backend));
    const int32_t *device_offsets = to_device(d, offsets, (c->groups + 1) * sizeof *offsets);
    for (int way = 0; way < (c->rows_per_slot == 1 ? 4 : 2); way++) {
        bool transpose = way % 2 != 0, share_tiles = way / 2 != 0;
        struct operand a = draw_operand(d, spare * c->k, 1.0f), b = draw_weights(d, c->groups * c->n * c->k),
                       bias = draw(d, c->groups * c->n, 1.0f);
        struct operand out = blank_operand(d, spare * c->n);
        double *expected = doubles(d, out.host, spare * c->n);
        for (size_t i = 0; i < rows; i++) {
            size_t e = group_of(c, offsets, i);
            struct matrix weight = transpose ? matrix_rows(b.host + e * c->n * c->k, c->n, c->k)
                                             : matrix_rows(b.host + e * c->n * c->k, c->k, c->n);
            reference_product(expected + i * c->n, matrix_rows(a.host + i * c->k, 1, c->k), false, weight, transpose);
            for (size_t j = 0; j < c->n; j++)
                expected[i * c->n + j] =
                    reference_activation(ACTIVATION_RELU, expected[i * c->n + j] + (double)bias.host[e * c->n + j]);
        }
        must_run(d, grouped_gemm, .kind = GROUPED_ROWS, .groups = c->groups, .rows_per_slot = c->rows_per_slot,
                 .offsets = device_offsets, .a = operand_rows(d, a.device, spare, c->k),
                 .b = matrix_rows(b.device, c->groups * c->n, c->k), .transpose_b = transpose,
                 .rows_share_tiles = share_tiles, .bias = bias.device, .activation = ACTIVATION_RELU,
                 .out = operand_rows(d, out.device, spare, c->n));
        expect_close_operand(d, "rows by expert", out.device, expected, rows * c->n, 3e-6);
        expect_operand(d, "rows of no expert", (char *)out.device + rows * c->n * size, out.host + rows * c->n,
                       (spare - rows) * c->n);
    }
}

static const struct grouped_case tile_cases[] = {
    {1, 1, 64, 768, {0}}, {1, 1, 768, 64, {0}}, {1, 2, 64, 512, {0}}, {1, 2, 63, 65, {0}}};

/* The products of `rows` rows of a after the first ones with b, which is transposed where the case says 1 row. */
static void *part_of_group(struct device *d, const struct grouped_case *c, const void *a, const float *b, size_t first,
                           size_t rows, bool one_sample)
{
    size_t size = tensor_type_size(backend_operand_type(d->backend));
    void *out = blank_operand(d, rows * c->n).device;
    must_run(d, grouped_gemm, .kind = GROUPED_ROWS, .groups = 1, .rows_per_slot = one_sample ? rows : 1,
             .offsets = to_device(d, (const int32_t[]){0, one_sample ? 1 : (int32_t)rows}, 2 * sizeof(int32_t)),
             .a = operand_rows(d, (char *)a + first * c->k * size, rows, c->k), .b = matrix_rows((void *)b, c->n, c->k),
             .transpose_b = c->rows_per_slot == 1, .rows_share_tiles = !one_sample,
             .out = operand_rows(d, out, rows, c->n));
    return out;
}

/* A row has the same bits wherever it lies among the rows of its group, and however many there are; nor does it know how many
 * positions its sample has, of which the longest prompt of a batch decides. */
DEVICE_TEST_OF(rows_do_not_know_their_neighbours, tile_cases)
{
    enum { ROWS = 250, LONGEST = 40 };
    const struct grouped_case *c = parameters;
    struct operand a = draw_operand(d, ROWS * c->k, 1.0f), b = draw_weights(d, c->n * c->k);
    const float *whole = operand_from_device(d, part_of_group(d, c, a.device, b.device, 0, ROWS, false), ROWS * c->n);
    for (size_t first = 7; first < ROWS; first += first < ROWS - 50 ? 7 : 1)
        expect_operand(d, "rows of a smaller group",
                       part_of_group(d, c, a.device, b.device, first, ROWS - first, false), whole + first * c->n,
                       (ROWS - first) * c->n);
    whole = operand_from_device(d, part_of_group(d, c, a.device, b.device, 0, LONGEST, true), LONGEST * c->n);
    for (size_t rows = LONGEST - 1; rows >= 2; rows--)
        expect_operand(d, "rows of a shorter sample", part_of_group(d, c, a.device, b.device, 0, rows, true), whole,
                       rows * c->n);
}

DEVICE_TEST_OF(weight_gradients_add_up_and_spare_the_frozen, grouped_cases)
{
    const struct grouped_case *c = parameters;
    int32_t offsets[7];
    size_t rows = list_offsets(c, offsets), weights = c->n * c->k;
    const int32_t frozen[6] = {0, 0, 1, 0, 0, 0};
    struct operand a = draw_operand(d, (rows + 1) * c->n, 1.0f), b = draw_operand(d, (rows + 1) * c->k, 1.0f);
    struct operand out = draw(d, c->groups * weights, 1.0f), sums = draw(d, c->groups * c->n, 1.0f);
    double *expected = doubles(d, out.host, c->groups * weights),
           *expected_sums = doubles(d, sums.host, c->groups * c->n);
    for (size_t i = 0; i < rows; i++) {
        size_t e = group_of(c, offsets, i);
        for (size_t j = 0; j < c->n && !frozen[e]; j++) {
            expected_sums[e * c->n + j] += (double)a.host[i * c->n + j];
            for (size_t k = 0; k < c->k; k++)
                expected[e * weights + j * c->k + k] += (double)a.host[i * c->n + j] * (double)b.host[i * c->k + k];
        }
    }
    must_run(d, grouped_gemm, .kind = GROUPED_WEIGHTS, .groups = c->groups, .rows_per_slot = c->rows_per_slot,
             .offsets = to_device(d, offsets, (c->groups + 1) * sizeof *offsets),
             .a = operand_rows(d, a.device, rows, c->n), .b = operand_rows(d, b.device, rows, c->k),
             .out = matrix_rows(out.device, c->groups * c->n, c->k), .column_sums = sums.device,
             .frozen = to_device(d, frozen, sizeof frozen));
    expect_close(d, "weight gradients by expert", out.device, expected, c->groups * weights, 5e-6);
    expect_close(d, "bias gradients by expert", sums.device, expected_sums, c->groups * c->n, 5e-6);
}

DEVICE_TEST_OF(sums_of_columns_add_up, product_cases)
{
    const struct product_case *c = parameters;
    struct slice x = draw_slice(d, c->m, c->n);
    struct operand out = draw(d, c->n, 1.0f);
    double *expected = doubles(d, out.host, c->n);
    for (size_t i = 0; i < c->m; i++)
        for (size_t j = 0; j < c->n; j++)
            expected[j] += reference_at(x.host, i, j);
    must_run(d, column_sum, .x = x.device, .out = out.device);
    expect_close(d, "column sums", out.device, expected, c->n, 3e-6);
}

/* A backend may keep frozen weights in a form of its own: not beyond their writing, nor beyond their group, where others
 * come to the same memory, and a recorded product reads them as they are by then. */
enum { IN = 48, OUT = 80, ROWS = 5 };

static struct linear frozen_linear(struct device *d, struct arena *arena, struct parameters **group, float *values)
{
    size_t weight, bias;
    parameters_create(group, d->backend);
    must(parameters_add(*group, "weight", 2, (size_t[]){OUT, IN}, 1, 0, &weight, &error));
    must(parameters_add(*group, "bias", 1, (size_t[]){OUT}, 1, 0, &bias, &error));
    must(parameters_allocate(*group, arena, PARAMETERS_FROZEN, &error));
    must(parameters_upload(*group, &(*group)->list[weight], values, &error));
    return (struct linear){
        .in = IN, .out = OUT, .weight = parameters_weight(*group, weight), .bias = parameters_weight(*group, bias)};
}

static void expect_both_ways(struct device *d, const struct linear *linear, const float *weights)
{
    struct operand x = draw_operand(d, ROWS * IN, 1.0f), dy = draw_operand(d, ROWS * OUT, 1.0f),
                   y = blank(d, ROWS * OUT), dx = blank(d, ROWS * IN);
    double *expected = doubles(d, y.host, ROWS * OUT);
    struct matrix w = matrix_rows((float *)weights, OUT, IN);
    for (int again = 0; again < 2; again++) {
        must(linear_forward(
            d->backend, linear,
            &(struct linear_forward){.x = operand_rows(d, x.device, ROWS, IN), .y = matrix_rows(y.device, ROWS, OUT)},
            &error));
        reference_product(expected, matrix_rows(x.host, ROWS, IN), false, w, true);
        expect_close(d, "forward", y.device, expected, ROWS * OUT, 3e-6);
        must(linear_backward(d->backend, linear,
                             &(struct linear_backward){.dy = operand_rows(d, dy.device, ROWS, OUT),
                                                       .dx = matrix_rows(dx.device, ROWS, IN)},
                             &error));
        reference_product(expected, matrix_rows(dy.host, ROWS, OUT), false, w, false);
        expect_close(d, "backward", dx.device, expected, ROWS * IN, 3e-6);
    }
}

struct recorded_product {
    struct device *d;
    const struct linear *linear;
    struct matrix x, y;
};

static status run_product(void *context, struct error *failure)
{
    struct recorded_product *p = context;
    return linear_forward(p->d->backend, p->linear, &(struct linear_forward){.x = p->x, .y = p->y}, failure);
}

/* Draws weights and bias, writes them to the group and repeats the product. */
static void expect_recorded(struct device *d, const struct linear *linear, struct parameters *group)
{
    struct operand x = draw_operand(d, ROWS * IN, 1.0f), y = blank_operand(d, ROWS * OUT);
    struct recorded_product product = {d, linear, operand_rows(d, x.device, ROWS, IN),
                                       operand_rows(d, y.device, ROWS, OUT)};
    struct recording recording = {0};
    for (int time = 0; time < 4; time++) {
        struct operand weight = draw_weights(d, OUT * IN), bias = draw(d, OUT, 2.0f);
        must(parameters_upload(group, &group->list[0], weight.host, &error));
        must(parameters_upload(group, &group->list[1], bias.host, &error));
        run_again(d, &recording, time == 1, run_product, &product);
        double *expected = doubles(d, NULL, ROWS * OUT);
        reference_product(expected, matrix_rows(x.host, ROWS, IN), false, matrix_rows(weight.host, OUT, IN), true);
        for (size_t i = 0; i < ROWS * OUT; i++)
            expected[i] += (double)bias.host[i % OUT];
        expect_close_operand(d, "recorded product", y.device, expected, ROWS * OUT, 3e-6);
    }
    d->ops->recording_destroy(d->backend, &recording);
}

DEVICE_TEST(frozen_weights_are_read_as_they_are)
{
    struct operand first = draw_weights(d, OUT * IN), second = draw_weights(d, OUT * IN),
                   third = draw_weights(d, OUT * IN);
    struct parameters *group;
    struct arena_mark mark = arena_mark(&d->memory);
    struct linear linear = frozen_linear(d, &d->memory, &group, first.host);
    struct arena_mark filled = arena_mark(&d->memory);
    expect_both_ways(d, &linear, first.host);
    must(parameters_upload(group, &group->list[0], second.host, &error));
    expect_both_ways(d, &linear, second.host);
    expect_recorded(d, &linear, group);
    parameters_destroy(group);
    arena_release(&d->memory, mark);
    linear = frozen_linear(d, &d->memory, &group, third.host);
    assert_true(arena_mark(&d->memory).used == filled.used);
    expect_both_ways(d, &linear, third.host);

    /* Weights of no group, as a mean of experts is: nobody says when they change. */
    struct linear loose = {.in = IN, .out = OUT, .weight.value = second.device, .bias.value = linear.bias.value};
    expect_both_ways(d, &loose, second.host);
    must(d->ops->upload(d->backend, second.device, first.host, OUT * IN * sizeof(float), &error));
    expect_both_ways(d, &loose, first.host);
    parameters_destroy(group);
}
