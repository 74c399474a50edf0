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

static struct slice slice_of(struct operand all, size_t columns)
{
    return (struct slice){matrix_columns(host_rows(all, columns + 3), 2, columns),
                          matrix_columns(device_rows(all, columns + 3), 2, columns)};
}

static struct slice draw_slice(struct device *d, size_t rows, size_t columns)
{
    return slice_of(draw_operand(d, rows * (columns + 3), 1.0f), columns);
}

static struct slice draw_weight_slice(struct device *d, size_t rows, size_t columns)
{
    return slice_of(draw_rounded(d, rows * (columns + 3), 1.0f), columns);
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
        struct operand out = blank(d, c->m * c->n), sum = draw(d, out.n, 1.0f);
        reference_product(out.expected, a.host, ta, b.host, tb);
        for (size_t i = 0; i < out.n; i++)
            sum.expected[i] += -2.5 * out.expected[i];
        must_run(d, gemm, .a = a.device, .b = b.device, .out = device_rows(out, c->n), .transpose_a = ta,
                 .transpose_b = tb);
        expect_operand(d, "product", out, 3e-6);
        must_run(d, gemm, .a = a.device, .b = b.device, .out = device_rows(sum, c->n), .transpose_a = ta,
                 .transpose_b = tb, .accumulate = true, .scale = -2.5f);
        expect_operand(d, "accumulated, scaled product", sum, 3e-6);
    }
}

static const struct product_case epilogue_cases[] = {{65, 63, 7}, {1, 197, 65}, {3, 1100, 577}};

DEVICE_TEST_OF(bias_addend_activation_and_back, epilogue_cases)
{
    const struct product_case *c = parameters;
    size_t n = c->m * c->n;
    if (is_like_others(d, c))
        return;
    for (enum activation kind = ACTIVATION_NONE; kind <= ACTIVATION_GELU_TANH; kind++)
        for (int in_place = 0; in_place < 2; in_place++) {
            struct slice a = draw_slice(d, c->m, c->k), b = draw_slice(d, c->n, c->k);
            size_t at = (size_t)in_place; /* of the bias: aligned, and not */
            struct operand bias = draw(d, at + c->n, 2.0f), addend = draw_operand(d, n, 2.0f),
                           before = blank_operand(d, n), out = in_place ? addend : blank_operand(d, n),
                           dx = blank_operand(d, n);
            double *product = doubles(d, NULL, n);
            reference_product(product, a.host, false, b.host, true);
            for (size_t i = 0; i < n; i++) {
                before.expected[i] = 0.25 * product[i] + (double)bias.host[at + i % c->n] + (double)addend.host[i];
                out.expected[i] = reference_activation(kind, before.expected[i]);
            }
            must_run(d, gemm, .a = a.device, .b = b.device, .transpose_b = true, .scale = 0.25f,
                     .bias = bias.device + at, .addend = device_rows(addend, c->n), .activation = kind,
                     .before = device_rows(before, c->n), .out = device_rows(out, c->n));
            expect_operand(d, "before the activation", before, 3e-6);
            expect_operand(d, "after the activation", out, 3e-6);

            const float *x = operand_values(d, before);
            for (size_t i = 0; i < n; i++)
                dx.expected[i] = product[i] * reference_slope(kind, (double)x[i]);
            must_run(d, gemm, .a = a.device, .b = b.device, .transpose_b = true, .backward = true, .activation = kind,
                     .before = device_rows(before, c->n), .out = device_rows(dx, c->n));
            expect_operand(d, "product through an activation", dx, 3e-6);
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
    double *expected = doubles(d, NULL, n), *product = doubles(d, NULL, n);
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
        out.expected[i] = expected[i] + (double)bias.host[i % COLUMNS];
    must_run(d, gemm, .a = a.device, .b = b.device, .transpose_b = true, .bias = bias.device,
             .out = device_rows(out, COLUMNS), .terms = terms, .terms_count = 3);
    expect_operand(d, "product with terms", out, 3e-6);
    for (size_t i = 0; i < n; i++)
        out.expected[i] = expected[i] * reference_slope(ACTIVATION_GELU, (double)before.host[i]);
    must_run(d, gemm, .a = a.device, .b = b.device, .transpose_b = true, .backward = true,
             .activation = ACTIVATION_GELU, .before = device_rows(before, COLUMNS), .out = device_rows(out, COLUMNS),
             .terms = terms, .terms_count = 3);
    expect_operand(d, "product with terms through an activation", out, 3e-6);
}

/* A row's bits must not depend on how many rows came with it, nor which. On a GPU the library may choose another algorithm where the
 * alignment differs, so that the rows begin at a place of their own. */
enum { BATCH = 450 };

static const struct product_case batch_cases[] = {{0, 128, 128}, {0, 7, 65},     {0, 1100, 512},
                                                  {0, 1030, 17}, {0, 1030, 577}, {0, 1, 1}};
static const size_t batch_parts[][2] = {{0, 1}, {449, 1}, {3, 7}, {1, 64}, {100, 65}, {190, 192}, {5, 193}, {0, 449}};

DEVICE_TEST_OF(rows_do_not_depend_on_their_batch, batch_cases)
{
    const struct product_case *c = parameters;
    bool anywhere = strcmp(d->ops->name, "cpu") == 0;
    if (is_like_others(d, c))
        return;
    for (size_t kind = 0; kind < 4; kind += test_every()) {
        bool transpose = kind & 1, add = kind & 2;
        struct operand all = draw_operand(d, BATCH * (c->k + 3), 1.0f);
        struct slice b = transpose ? draw_slice(d, c->n, c->k) : draw_slice(d, c->k, c->n);
        struct operand bias = draw(d, c->n, 1.0f), start = draw(d, BATCH * c->n, 1.0f), whole = start;
        for (size_t i = 0; i < 1 + sizeof batch_parts / sizeof *batch_parts; i++) { /* first the whole */
            size_t first = i > 0 ? batch_parts[i - 1][0] : 0, count = i > 0 ? batch_parts[i - 1][1] : BATCH;
            if (i > 0 && (i + kind) % test_every() != 0)
                continue;
            struct operand own = operand_part(d, start, first * c->n, count * c->n);
            struct operand part = anywhere ? all : operand_part(d, all, first * (c->k + 3), count * (c->k + 3));
            struct matrix rows = slice_of(part, c->k).device, out = device_rows(own, c->n);
            if (anywhere)
                rows.data = (char *)rows.data + first * rows.stride * tensor_type_size(rows.type);
            rows.rows = count;
            must_run(d, gemm, .a = rows, .b = b.device, .transpose_b = transpose, .bias = bias.device,
                     .activation = ACTIVATION_QUICK_GELU, .out = out, .addend = add ? out : (struct matrix){0});
            if (i == 0)
                whole.host = operand_values(d, own);
            own.host = whole.host + first * c->n;
            expect_host_bits(d, "rows in a smaller batch", own);
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
    size_t rows = list_offsets(c, offsets), spare = rows + c->rows_per_slot;
    const int32_t *device_offsets = to_device(d, offsets, (c->groups + 1) * sizeof *offsets);
    for (int way = 0; way < (c->rows_per_slot == 1 ? 4 : 2); way++) {
        bool transpose = way % 2 != 0, share_tiles = way / 2 != 0;
        struct operand a = draw_operand(d, spare * c->k, 1.0f), b = draw_rounded(d, c->groups * c->n * c->k, 1.0f),
                       bias = draw(d, c->groups * c->n, 1.0f), out = blank_operand(d, spare * c->n);
        for (size_t i = 0; i < rows; i++) {
            size_t e = group_of(c, offsets, i);
            double *row = out.expected + i * c->n;
            struct matrix weight = transpose ? matrix_rows(b.host + e * c->n * c->k, c->n, c->k)
                                             : matrix_rows(b.host + e * c->n * c->k, c->k, c->n);
            reference_product(row, matrix_rows(a.host + i * c->k, 1, c->k), false, weight, transpose);
            for (size_t j = 0; j < c->n; j++)
                row[j] = reference_activation(ACTIVATION_RELU, row[j] + (double)bias.host[e * c->n + j]);
        }
        must_run(d, grouped_gemm, .kind = GROUPED_ROWS, .groups = c->groups, .rows_per_slot = c->rows_per_slot,
                 .offsets = device_offsets, .a = device_rows(a, c->k),
                 .b = matrix_rows(b.device, c->groups * c->n, c->k), .transpose_b = transpose,
                 .rows_share_tiles = share_tiles, .bias = bias.device, .activation = ACTIVATION_RELU,
                 .out = device_rows(out, c->n));
        const float *found = operand_values(d, out);
        assert_memory_equal(found + rows * c->n, out.host + rows * c->n, (out.n - rows * c->n) * sizeof *found);
        out.n = rows * c->n; /* what is behind them is of no expert */
        expect_operand(d, "rows by expert", out, 3e-6);
    }
}

static const struct grouped_case tile_cases[] = {
    {1, 1, 64, 768, {0}}, {1, 1, 768, 64, {0}}, {1, 2, 64, 512, {0}}, {1, 2, 63, 65, {0}}};

/* The products of rows of a with b, which is transposed where the case says 1 row. */
static struct operand product_of_group(struct device *d, const struct grouped_case *c, struct operand a,
                                       struct operand b, bool one_sample)
{
    size_t rows = a.n / c->k;
    struct operand out = blank_operand(d, rows * c->n);
    must_run(d, grouped_gemm, .kind = GROUPED_ROWS, .groups = 1, .rows_per_slot = one_sample ? rows : 1,
             .offsets = to_device(d, (const int32_t[]){0, one_sample ? 1 : (int32_t)rows}, 2 * sizeof(int32_t)),
             .a = device_rows(a, c->k), .b = matrix_rows(b.device, c->n, c->k), .transpose_b = c->rows_per_slot == 1,
             .rows_share_tiles = !one_sample, .out = device_rows(out, c->n));
    return out;
}

/* A row has the same bits wherever it lies among the rows of its group, and however many there are; nor does it know how many
 * positions its sample has, of which the longest prompt of a batch decides. */
DEVICE_TEST_OF(rows_do_not_know_their_neighbours, tile_cases)
{
    enum { ROWS = 250, LONGEST = 40 };
    const struct grouped_case *c = parameters;
    struct operand a = draw_operand(d, ROWS * c->k, 1.0f), b = draw_rounded(d, c->n * c->k, 1.0f), part;
    const float *whole = operand_values(d, product_of_group(d, c, a, b, false));
    for (size_t first = 7; first < ROWS; first += test_every() * (first < ROWS - 50 ? 7 : 1)) {
        part = product_of_group(d, c, operand_part(d, a, first * c->k, a.n - first * c->k), b, false);
        memcpy(part.host, whole + first * c->n, part.n * sizeof *whole);
        expect_host_bits(d, "rows of a smaller group", part);
    }
    a.n = LONGEST * c->k;
    struct operand longest = product_of_group(d, c, a, b, true);
    for (size_t rows = 2; rows < LONGEST; rows += test_every()) {
        a.n = rows * c->k;
        expect_equal_bits(d, "rows of a shorter sample", product_of_group(d, c, a, b, true), longest);
    }
}

DEVICE_TEST_OF(weight_gradients_add_up_and_spare_the_frozen, grouped_cases)
{
    const struct grouped_case *c = parameters;
    int32_t offsets[7];
    size_t rows = list_offsets(c, offsets), weights = c->n * c->k;
    const int32_t frozen[6] = {0, 0, 1, 0, 0, 0};
    struct operand a = draw_operand(d, (rows + 1) * c->n, 1.0f), b = draw_operand(d, (rows + 1) * c->k, 1.0f),
                   out = draw(d, c->groups * weights, 1.0f), sums = draw(d, c->groups * c->n, 1.0f);
    a.n = rows * c->n;
    b.n = rows * c->k;
    for (size_t i = 0; i < rows; i++) {
        size_t e = group_of(c, offsets, i);
        for (size_t j = 0; j < c->n && !frozen[e]; j++) {
            sums.expected[e * c->n + j] += (double)a.host[i * c->n + j];
            for (size_t k = 0; k < c->k; k++)
                out.expected[e * weights + j * c->k + k] += (double)a.host[i * c->n + j] * (double)b.host[i * c->k + k];
        }
    }
    must_run(d, grouped_gemm, .kind = GROUPED_WEIGHTS, .groups = c->groups, .rows_per_slot = c->rows_per_slot,
             .offsets = to_device(d, offsets, (c->groups + 1) * sizeof *offsets), .a = device_rows(a, c->n),
             .b = device_rows(b, c->k), .out = device_rows(out, c->k), .column_sums = sums.device,
             .frozen = to_device(d, frozen, sizeof frozen));
    expect_operand(d, "weight gradients by expert", out, 5e-6);
    expect_operand(d, "bias gradients by expert", sums, 5e-6);
}

DEVICE_TEST_OF(sums_of_columns_add_up, product_cases)
{
    const struct product_case *c = parameters;
    struct slice x = draw_slice(d, c->m, c->n);
    struct operand out = draw(d, c->n, 1.0f);
    for (size_t i = 0; i < c->m; i++)
        for (size_t j = 0; j < c->n; j++)
            out.expected[j] += reference_at(x.host, i, j);
    must_run(d, column_sum, .x = x.device, .out = out.device);
    expect_operand(d, "column sums", out, 3e-6);
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

struct recorded_product {
    struct device *d;
    const struct linear *linear;
    struct operand x, y;
};

static status run_product(void *context, struct error *failure)
{
    struct recorded_product *p = context;
    return linear_forward(p->d->backend, p->linear,
                          &(struct linear_forward){.x = device_rows(p->x, IN), .y = device_rows(p->y, OUT)}, failure);
}

static void expect_both_ways(struct device *d, const struct linear *linear, struct operand weights)
{
    struct operand dy = draw_operand(d, ROWS * OUT, 1.0f), dx = blank(d, ROWS * IN);
    struct recorded_product p = {d, linear, draw_operand(d, ROWS * IN, 1.0f), blank(d, ROWS * OUT)};
    reference_product(p.y.expected, host_rows(p.x, IN), false, host_rows(weights, IN), true);
    reference_product(dx.expected, host_rows(dy, OUT), false, host_rows(weights, IN), false);
    for (int again = 0; again < 2; again++) {
        must(run_product(&p, &error));
        expect_operand(d, "forward", p.y, 3e-6);
        must(linear_backward(d->backend, linear,
                             &(struct linear_backward){.dy = device_rows(dy, OUT), .dx = device_rows(dx, IN)}, &error));
        expect_operand(d, "backward", dx, 3e-6);
    }
}

/* Draws weights and bias, writes them to the group and repeats the product. */
static void expect_recorded(struct device *d, const struct linear *linear, struct parameters *group)
{
    struct recorded_product p = {d, linear, draw_operand(d, ROWS * IN, 1.0f), blank_operand(d, ROWS * OUT)};
    struct recording recording = {0};
    for (int time = 0; time < 4; time++) {
        struct operand weight = draw_rounded(d, OUT * IN, 1.0f), bias = draw(d, OUT, 2.0f);
        must(parameters_upload(group, &group->list[0], weight.host, &error));
        must(parameters_upload(group, &group->list[1], bias.host, &error));
        run_again(d, &recording, time == 1, run_product, &p);
        reference_product(p.y.expected, host_rows(p.x, IN), false, host_rows(weight, IN), true);
        for (size_t i = 0; i < p.y.n; i++)
            p.y.expected[i] += (double)bias.host[i % OUT];
        expect_operand(d, "recorded product", p.y, 3e-6);
    }
    d->ops->recording_destroy(d->backend, &recording);
}

DEVICE_TEST(frozen_weights_are_read_as_they_are)
{
    struct operand first = draw_rounded(d, OUT * IN, 1.0f), second = draw_rounded(d, OUT * IN, 1.0f),
                   third = draw_rounded(d, OUT * IN, 1.0f);
    struct parameters *group;
    struct arena_mark mark = arena_mark(&d->memory);
    struct linear linear = frozen_linear(d, &d->memory, &group, first.host);
    struct arena_mark filled = arena_mark(&d->memory);
    expect_both_ways(d, &linear, first);
    must(parameters_upload(group, &group->list[0], second.host, &error));
    expect_both_ways(d, &linear, second);
    expect_recorded(d, &linear, group);
    parameters_destroy(group);
    arena_release(&d->memory, mark);
    linear = frozen_linear(d, &d->memory, &group, third.host);
    assert_true(arena_mark(&d->memory).used == filled.used);
    expect_both_ways(d, &linear, third);

    /* Weights of no group, as a mean of experts is: nobody says when they change. */
    struct linear loose = {.in = IN, .out = OUT, .weight.value = second.device, .bias.value = linear.bias.value};
    expect_both_ways(d, &loose, second);
    must(d->ops->upload(d->backend, second.device, first.host, OUT * IN * sizeof(float), &error));
    expect_both_ways(d, &loose, first);
    parameters_destroy(group);
}
