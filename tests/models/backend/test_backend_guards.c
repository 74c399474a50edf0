/* Overruns of tensors are reported, on either side, and fresh memory is no number. */
#include <math.h>

#include "tests/fault.h"
#include "tests/models/device.h"

enum { VALUES = 5 };

static struct tensor first, second;

static void take_two(struct device *d)
{
    device_open(d, 1);
    must(tensor_take(&first, &d->memory, TENSOR_F32, "first", 1, (size_t[]){VALUES}, &error));
    must(tensor_take(&second, &d->memory, TENSOR_F32, "second", 1, (size_t[]){VALUES}, &error));
}

/* Writes all values of the second tensor, `lower` more before them and `upper` more behind them. */
static void write_around(struct device *d, size_t lower, size_t upper)
{
    must(d->ops->zero(d->backend, (float *)second.data - lower, (VALUES + lower + upper) * sizeof(float), &error));
}

static void overrun(size_t lower, size_t upper)
{
    struct device d;
    take_two(&d);
    write_around(&d, lower, upper);
    device_close(&d);
}

static void write_before(void)
{
    overrun(1, 0);
}

static void write_behind(void)
{
    overrun(0, 1);
}

/* Another tensor that was released, and whose place is taken again. */
static void write_behind_what_was_released(void)
{
    struct device d;
    take_two(&d);
    for (int step = 0; step < 2; step++) {
        struct arena_mark mark = arena_mark(&d.memory);
        must(tensor_take(&second, &d.memory, TENSOR_F32, "of a step", 1, (size_t[]){VALUES}, &error));
        write_around(&d, 0, step == 1 ? 1 : 0);
        arena_release(&d.memory, mark);
    }
    device_close(&d);
}

TEST(overruns_are_named)
{
    expect_fault(write_before,
                 (const char *const[]){"\"second\"", "of 20 bytes", "a byte before it", "test arena", NULL});
    expect_fault(write_behind, (const char *const[]){"\"second\"", "a byte behind it", NULL});
    expect_fault(write_behind_what_was_released, (const char *const[]){"\"of a step\"", "a byte behind it", NULL});
}

TEST(what_is_within_bounds_is_not_reported)
{
    struct device d;
    take_two(&d);
    write_around(&d, 0, 0);
    device_close(&d);
}

TEST(fresh_memory_is_no_number)
{
    struct device d;
    take_two(&d);
    const float *values = from_device(&d, first.data, sizeof(float[VALUES]));
    for (size_t i = 0; i < VALUES; i++)
        assert_true(isnan(values[i]));
    device_close(&d);
}
