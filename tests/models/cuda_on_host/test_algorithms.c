/* How products choose among the algorithms of a library that refuses some: product.cpp. */
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"

/* Of product.cpp. */
extern size_t emulation_heuristics_asked;
extern bool emulation_refuses_few_rows;

enum { DEPTH = 40, MOST_COLUMNS = 1300 };

struct operands {
    struct operand a, b, out;
};

static struct operands draw_operands(struct device *d, size_t rows, size_t columns)
{
    return (struct operands){draw(d, rows * DEPTH, 1.0f), draw(d, columns * DEPTH, 1.0f), blank(d, rows * columns)};
}

/* The product of the first `rows` rows with as many columns as are asked for. */
static status multiply(struct device *d, const struct operands *o, size_t rows, size_t columns)
{
    const struct gemm product = {.a = matrix_rows(o->a.device, rows, DEPTH),
                                 .b = matrix_rows(o->b.device, columns, DEPTH),
                                 .transpose_b = true,
                                 .out = matrix_rows(o->out.device, rows, columns)};
    return d->ops->gemm(d->backend, &product, &error);
}

/* The best algorithm takes no fewer than 8 rows, the next no more than 60,000. */
TEST(the_algorithm_takes_any_number_of_rows)
{
    enum { COLUMNS = 8, ROWS = 65536 };
    static const size_t counts[] = {1, 3, 8, 197, 4096, ROWS};
    struct device d;
    device_open(&d, 1);
    struct operands o = draw_operands(&d, ROWS, COLUMNS);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        must(multiply(&d, &o, counts[i], COLUMNS));
    reference_product(o.out.expected, host_rows(o.a, DEPTH), false, host_rows(o.b, DEPTH), true);
    expect_operand(&d, "product", o.out, 3e-6);
    device_close(&d);
}

/* Where no algorithm takes all numbers of rows, the best is used as far as it goes. */
TEST(what_no_algorithm_takes_is_refused)
{
    struct device d;
    device_open(&d, 1);
    struct operands o = draw_operands(&d, 16, 16);
    emulation_refuses_few_rows = true;
    must(multiply(&d, &o, 16, 16));
    check_refusal(
        multiply(&d, &o, 3, 16), ERROR_DEVICE,
        (const char *const[]){"a product of 3 x 16 x 40", "NOT_SUPPORTED", "4096 rows", "run.backend=cpu", NULL});
    emulation_refuses_few_rows = false;
    device_close(&d);
}

/* Each shape is asked for once, as long as the table has room, however many there are; then it begins anew. */
TEST(each_shape_is_asked_for_once)
{
    enum { FEW = 700 };
    struct device d;
    device_open(&d, 1);
    struct operands o = draw_operands(&d, 2, MOST_COLUMNS);
    size_t before = emulation_heuristics_asked;
    for (size_t columns = 1; columns <= FEW; columns++)
        must(multiply(&d, &o, 2, columns));
    assert_int_equal(emulation_heuristics_asked - before, FEW);
    for (size_t columns = 1; columns <= FEW; columns++)
        must(multiply(&d, &o, 1, columns));
    assert_int_equal(emulation_heuristics_asked - before, FEW);
    for (size_t columns = FEW + 1; columns <= MOST_COLUMNS; columns++)
        must(multiply(&d, &o, 2, columns));
    assert_int_equal(emulation_heuristics_asked - before, MOST_COLUMNS);
    must(multiply(&d, &o, 2, MOST_COLUMNS));
    assert_int_equal(emulation_heuristics_asked - before, MOST_COLUMNS);
    reference_product(o.out.expected, host_rows(o.a, DEPTH), false, host_rows(o.b, DEPTH), true);
    expect_operand(&d, "the last product", o.out, 3e-6);
    device_close(&d);
}
