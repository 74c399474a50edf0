/* The backend under test, operands on it, and comparisons with plain references.
 *
 *     DEVICE_TEST(values_are_doubled) // with 1, 2 and 3 threads: the same bits
 *     {
 *         struct operand x = draw(d, 65, 1.0f), y = blank(d, 65); // the same values on host and device
 *         for (size_t i = 0; i < y.n; i++)
 *             y.expected[i] = 2 * (double)x.host[i];
 *         must_run(d, weighted_sum, .count = 1, .n = y.n, .inputs = {x.device}, .weights = {2}, .out = y.device);
 *         expect_operand(d, "y", y, 1e-6);
 *     }
 *
 * MTIL_TEST_BACKEND names the backend; cpu unless set, so that another backend runs the same tests. With
 * MTIL_TEST_PRECISION=bf16 they run in that precision: operands of products are stored as bf16 (draw_operand rounds what
 * the reference sees, too), and results that pass through bf16 have the tolerance that rounded() gives.
 */
#pragma once

#include "models/backend.h"
#include "tests/test.h"

struct device {
    struct backend *backend;
    const struct backend_ops *ops;
    struct arena memory, host;
    uint64_t drawn, bits; /* numbers drawn, and a digest of every result that was looked at */
};

/* n values on both sides, and what an operation has to make of them: at first those that were drawn, or zeros where they are
 * blank. */
struct operand {
    float *host, *device;
    double *expected;
    size_t n;
    enum tensor_type type; /* on the device; of bf16 the host has the rounded values */
};

extern struct error error; /* of the last call that failed */
void must(status result);

/* An operation on a device: must_run(d, gather_rows, .x = x, .out = y, .rows = rows); */
#define must_run(d, operation, ...) must((d)->ops->operation((d)->backend, &(struct operation){__VA_ARGS__}, &error))

/* The call failed with code, and the message has every one of the words. */
#define must_refuse(result, code, ...) check_refusal(result, code, (const char *const[]){__VA_ARGS__, NULL})
void check_refusal(status result, status code, const char *const *words);

/* Room for what a routing operation fills, on the device (d->memory) or the host (d->host). */
struct dispatch take_dispatch(struct arena *arena, size_t samples, size_t experts, size_t top_k);
struct dispatch dispatch_to_device(struct device *d, const struct dispatch *host);

/* What routing writes by expert: counts of before, to which it adds; flags of before, and every third expert frozen. */
enum { TALLIED_EXPERTS = 512 };
struct tallies {
    int32_t counts[TALLIED_EXPERTS], used[TALLIED_EXPERTS], frozen[TALLIED_EXPERTS];
    int32_t *device_counts, *device_used, *device_frozen;
};
struct tallies take_tallies(struct device *d);
/* After a dispatch with these gates [B, K]; add_used: beside what was used before. */
void expect_tallies(struct device *d, struct tallies *t, const struct dispatch *want, const double *gates,
                    bool add_used);

const char *test_backend_name(void);
void device_open(struct device *d, size_t threads);
void device_open_at(struct device *d, size_t threads, size_t device); /* the device of that number */
void device_close(struct device *d);

/* Runs body on a fresh device with 1, 2 and 3 threads and demands the same bits of every result. */
typedef void (*device_body)(struct device *d, const void *parameters);
void on_device(device_body body, const void *parameters);

/* What run returns is the same with 1, 2 and 3 threads: of a model that it opens, the bits of its device. */
void expect_same_bits(uint64_t (*run)(size_t threads));

/* Tests whose body is that of on_device: once, or once per row of a table, whose row is then parameters. */
#define DEVICE_TEST(name)                                                                                              \
    static void name##_on(struct device *d, const void *parameters);                                                   \
    TEST(name)                                                                                                         \
    {                                                                                                                  \
        on_device(name##_on, NULL);                                                                                    \
    }                                                                                                                  \
    static void name##_on(struct device *d, __attribute__((unused)) const void *parameters)

#define DEVICE_TEST_OF(name, table)                                                                                    \
    static void name##_on(struct device *d, const void *parameters);                                                   \
    TEST(name)                                                                                                         \
    {                                                                                                                  \
        for (size_t i = 0; i < sizeof(table) / sizeof *(table); i++)                                                   \
            on_device(name##_on, &(table)[i]);                                                                         \
    }                                                                                                                  \
    static void name##_on(struct device *d, const void *parameters)

/* One of several runs of a step: of the body by itself, recorded, or (where that went well before) replayed. */
void run_again(struct device *d, struct recording *recording, bool record, recorded_body body, void *context);

struct operand draw(struct device *d, size_t n, float deviation); /* normal */
struct operand blank(struct device *d, size_t n);                 /* a number that no result may keep */
/* The same, stored as the backend stores what only products read. */
struct operand draw_operand(struct device *d, size_t n, float deviation);
struct operand blank_operand(struct device *d, size_t n);
/* As weights are: f32, but of values that bf16 does not round. */
struct operand draw_rounded(struct device *d, size_t n, float deviation);
/* The host's values once more, at another place of the device; they are what is expected, too. */
void operand_renew(struct device *d, struct operand *x);
/* n of its values, at a place of their own. */
struct operand operand_part(struct device *d, struct operand x, size_t first, size_t n);
/* [n / columns, columns] */
struct matrix device_rows(struct operand x, size_t columns);
struct matrix host_rows(struct operand x, size_t columns);

static inline float bf16_value(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void *to_device(struct device *d, const void *values, size_t bytes);
void *host_room(struct device *d, size_t bytes); /* zero */
void *room(struct device *d, size_t bytes);      /* on the device, zero */
float *ones(struct device *d, size_t n);         /* likewise */
void *from_device(struct device *d, const void *device, size_t bytes);
float *operand_values(struct device *d, struct operand x); /* on the device */
double rounded(const struct device *d, double tolerance);  /* at least 1% in bf16 */

double *doubles(struct device *d, const float *values, size_t n); /* on the host; NULL: zeros */

/* Largest deviation at most tolerance times the largest expected magnitude (at least 1); NaN never passes. Of values in bf16
 * the tolerance is rounded. */
void expect_operand(struct device *d, const char *what, struct operand x, double tolerance);
void expect_close(struct device *d, const char *what, const void *device, const double *expected, size_t n,
                  double tolerance);
/* Bit for bit: floats; the host's values; those of another operand on the device, as far as both go. */
void expect_floats(struct device *d, const char *what, const void *device, const float *expected, size_t n);
void expect_host_bits(struct device *d, const char *what, struct operand x);
void expect_equal_bits(struct device *d, const char *what, struct operand x, struct operand other);
void expect_integers(struct device *d, const char *what, const void *device, const int32_t *expected, size_t n);

/* All but the gates, of choices that have a slot or have none. */
void expect_dispatch(struct device *d, const struct dispatch *got, const struct dispatch *want);

/* got [n] are 1 + the central differences of a loss, which steps of h on the host's values give. */
void expect_slopes(struct device *d, const char *what, const float *got, float *values, size_t n, float h,
                   double (*loss)(void *context), void *context);

/* The loss along the gradient's own direction, n values on the device, must rise by the gradient's norm: a direction
 * that is large against rounding, and wrong if any part of it is. Fails where there is no gradient. */
void check_gradient(struct device *d, const char *name, float *values, const float *gradient, size_t n,
                    float (*loss)(void *context), void *context);

/* A host copy of a result; it joins the digest, as those of the expectations do. */
void *digest(struct device *d, const void *device, size_t bytes);
