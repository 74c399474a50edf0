#include "tests/models/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

struct error error;

void must(status result)
{
    if (result != OK)
        fail_msg("%s", error.message);
}

void check_refusal(status result, status code, const char *const *words)
{
    if (result != code)
        fail_msg("expected status %d, found %d: %s", (int)code, (int)result, error.message);
    for (; *words != NULL; words++)
        if (strstr(error.message, *words) == NULL)
            fail_msg("'%s' is not in: %s", *words, error.message);
}

struct dispatch take_dispatch(struct arena *arena, size_t samples, size_t experts, size_t top_k)
{
    size_t choices = samples * top_k * sizeof(int32_t);
    return (struct dispatch){.samples = samples,
                             .experts = experts,
                             .top_k = top_k,
                             .chosen = arena_take(arena, choices),
                             .gates = arena_take(arena, choices),
                             .slot = arena_take(arena, choices),
                             .sample = arena_take(arena, choices),
                             .choice = arena_take(arena, choices),
                             .offsets = arena_take(arena, (experts + 1) * sizeof(int32_t))};
}

struct dispatch dispatch_to_device(struct device *d, const struct dispatch *host)
{
    size_t choices = host->samples * host->top_k * sizeof(int32_t);
    return (struct dispatch){.samples = host->samples,
                             .experts = host->experts,
                             .top_k = host->top_k,
                             .chosen = to_device(d, host->chosen, choices),
                             .gates = to_device(d, host->gates, choices),
                             .slot = to_device(d, host->slot, choices),
                             .sample = to_device(d, host->sample, choices),
                             .choice = to_device(d, host->choice, choices),
                             .offsets = to_device(d, host->offsets, (host->experts + 1) * sizeof(int32_t))};
}

const char *test_backend_name(void)
{
    const char *name = getenv("MTIL_TEST_BACKEND");
    return name != NULL && name[0] != '\0' ? name : "cpu";
}

static enum precision test_precision(void)
{
    const char *name = getenv("MTIL_TEST_PRECISION");
    return name != NULL && strcmp(name, "bf16") == 0 ? PRECISION_BF16 : PRECISION_F32;
}

void device_open(struct device *d, size_t threads)
{
    device_open_at(d, threads, 0);
}

void device_open_at(struct device *d, size_t threads, size_t device)
{
    const struct backend_settings settings = {.name = test_backend_name(),
                                              .threads = threads,
                                              .device = device,
                                              .gpus = device + 1,
                                              .precision = test_precision()};
    *d = (struct device){.bits = 14695981039346656037u};
    status opened = backend_open(&d->backend, &settings, &error);
    if (opened == ERROR_DEVICE) {
        fprintf(stderr, "skipped, %s\n", error.message);
        exit(77);
    }
    must(opened);
    d->ops = d->backend->ops;
    must(d->ops->arena_create(d->backend, &d->memory, (size_t)1 << 30, "test", &error));
    must(arena_create(&d->host, (size_t)1 << 30, "reference", &error));
}

void device_close(struct device *d)
{
    d->ops->arena_destroy(d->backend, &d->memory);
    arena_destroy(&d->host);
    backend_close(d->backend);
}

void on_device(device_body body, const void *parameters)
{
    uint64_t bits = 0;
    size_t most = strcmp(test_backend_name(), "cuda") == 0 ? 2 : 3; /* it has no threads: twice the same is enough */
    for (size_t threads = 1; threads <= most; threads++) {
        struct device d;
        device_open(&d, threads);
        body(&d, parameters);
        if (threads > 1 && d.bits != bits)
            fail_msg("the results of run %zu, or of %zu threads, differ from those of the first", threads, threads);
        bits = d.bits;
        device_close(&d);
    }
}

void expect_same_bits(uint64_t (*run)(size_t threads))
{
    uint64_t first = run(1);
    for (size_t threads = 2; threads <= 3; threads++)
        if (run(threads) != first)
            fail_msg("the results of %zu threads differ from those of one", threads);
}

void run_again(struct device *d, struct recording *recording, bool record, recorded_body body, void *context)
{
    if (record)
        must(d->ops->record(d->backend, recording, body, context, &error));
    else if (recording->owner != NULL)
        must(d->ops->replay(d->backend, recording, &error));
    else
        must(body(context, &error));
}

void *host_room(struct device *d, size_t bytes)
{
    void *memory = arena_take(&d->host, bytes);
    if (memory == NULL)
        fail_msg("no memory for %zu bytes", bytes);
    return memset(memory, 0, bytes);
}

void *room(struct device *d, size_t bytes)
{
    void *memory = arena_take(&d->memory, bytes);
    if (memory == NULL)
        fail_msg("no device memory for %zu bytes", bytes);
    must(d->ops->zero(d->backend, memory, bytes, &error));
    return memory;
}

void *to_device(struct device *d, const void *values, size_t bytes)
{
    void *memory = room(d, bytes);
    must(d->ops->upload(d->backend, memory, values, bytes, &error));
    return memory;
}

float *ones(struct device *d, size_t n)
{
    float *values = host_room(d, n * sizeof *values);
    for (size_t i = 0; i < n; i++)
        values[i] = 1;
    return to_device(d, values, n * sizeof *values);
}

void *from_device(struct device *d, const void *device, size_t bytes)
{
    void *memory = host_room(d, bytes);
    must(d->ops->download(d->backend, memory, device, bytes, &error));
    return memory;
}

/* To the nearest, ties to even. */
static uint16_t round_to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void operand_renew(struct device *d, struct operand *x)
{
    uint16_t *halves = x->type == TENSOR_BF16 ? host_room(d, x->n * sizeof *halves) : NULL;
    for (size_t i = 0; i < x->n; i++) {
        if (halves != NULL)
            x->host[i] = bf16_value(halves[i] = round_to_bf16(x->host[i]));
        x->expected[i] = (double)x->host[i];
    }
    x->device =
        halves != NULL ? to_device(d, halves, x->n * sizeof *halves) : to_device(d, x->host, x->n * sizeof(float));
}

static struct operand make_operand(struct device *d, size_t n, enum tensor_type type)
{
    return (struct operand){
        .host = host_room(d, n * sizeof(float)), .expected = host_room(d, n * sizeof(double)), .n = n, .type = type};
}

static struct operand draw_as(struct device *d, size_t n, float deviation, enum tensor_type type)
{
    struct operand x = make_operand(d, n, type);
    struct rng rng = rng_make(11, RNG_TEST, 0, 0);
    for (size_t i = 0; i < n; i++)
        x.host[i] = deviation * rng_normal(&rng, d->drawn++);
    operand_renew(d, &x);
    return x;
}

static struct operand blank_as(struct device *d, size_t n, enum tensor_type type)
{
    struct operand x = make_operand(d, n, type);
    for (size_t i = 0; i < n; i++)
        x.host[i] = -1e30f;
    operand_renew(d, &x);
    memset(x.expected, 0, n * sizeof *x.expected);
    return x;
}

struct operand draw(struct device *d, size_t n, float deviation)
{
    return draw_as(d, n, deviation, TENSOR_F32);
}

struct operand draw_operand(struct device *d, size_t n, float deviation)
{
    return draw_as(d, n, deviation, backend_operand_type(d->backend));
}

struct operand blank(struct device *d, size_t n)
{
    return blank_as(d, n, TENSOR_F32);
}

struct operand blank_operand(struct device *d, size_t n)
{
    return blank_as(d, n, backend_operand_type(d->backend));
}

struct operand draw_rounded(struct device *d, size_t n, float deviation)
{
    struct operand x = draw_operand(d, n, deviation);
    x.type = TENSOR_F32;
    operand_renew(d, &x);
    return x;
}

struct operand operand_part(struct device *d, struct operand x, size_t first, size_t n)
{
    struct operand part = {.host = x.host + first, .expected = x.expected + first, .n = n, .type = x.type};
    operand_renew(d, &part);
    return part;
}

struct matrix device_rows(struct operand x, size_t columns)
{
    struct matrix m = matrix_rows(x.device, x.n / columns, columns);
    m.type = x.type;
    return m;
}

struct matrix host_rows(struct operand x, size_t columns)
{
    return matrix_rows(x.host, x.n / columns, columns);
}

/* What was downloaded of values of a type, as floats. */
static float *widen(struct device *d, void *values, size_t n, enum tensor_type type)
{
    if (type != TENSOR_BF16)
        return values;
    float *wide = host_room(d, n * sizeof *wide);
    for (size_t i = 0; i < n; i++)
        wide[i] = bf16_value(((const uint16_t *)values)[i]);
    return wide;
}

float *operand_values(struct device *d, struct operand x)
{
    return widen(d, from_device(d, x.device, x.n * tensor_type_size(x.type)), x.n, x.type);
}

double rounded(const struct device *d, double tolerance)
{
    return backend_operand_type(d->backend) == TENSOR_BF16 && tolerance < 0.01 ? 0.01 : tolerance;
}

double *doubles(struct device *d, const float *values, size_t n)
{
    double *wide = host_room(d, n * sizeof *wide);
    for (size_t i = 0; values != NULL && i < n; i++)
        wide[i] = (double)values[i];
    return wide;
}

/* FNV-1a */
void *digest(struct device *d, const void *device, size_t bytes)
{
    uint8_t *values = from_device(d, device, bytes);
    for (size_t i = 0; i < bytes; i++)
        d->bits = (d->bits ^ values[i]) * 1099511628211u;
    return values;
}

static void check_close(const char *what, const float *got, const double *expected, size_t n, double tolerance)
{
    double largest = 1;
    for (size_t i = 0; i < n; i++)
        largest = fabs(expected[i]) > largest ? fabs(expected[i]) : largest;
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - expected[i]) <= tolerance * largest))
            fail_msg("%s: value %zu of %zu: expected %.9g, found %.9g, tolerance %.3g", what, i, n, expected[i],
                     (double)got[i], tolerance * largest);
}

static void check_floats(const char *what, const float *got, const float *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&got[i], &expected[i], sizeof *got) != 0)
            fail_msg("%s: value %zu of %zu: expected %.9g, found %.9g", what, i, n, (double)expected[i],
                     (double)got[i]);
}

static const float *digest_operand(struct device *d, struct operand x)
{
    return widen(d, digest(d, x.device, x.n * tensor_type_size(x.type)), x.n, x.type);
}

void expect_operand(struct device *d, const char *what, struct operand x, double tolerance)
{
    check_close(what, digest_operand(d, x), x.expected, x.n, x.type == TENSOR_BF16 ? rounded(d, tolerance) : tolerance);
}

void expect_close(struct device *d, const char *what, const void *device, const double *expected, size_t n,
                  double tolerance)
{
    check_close(what, digest(d, device, n * sizeof(float)), expected, n, tolerance);
}

void expect_floats(struct device *d, const char *what, const void *device, const float *expected, size_t n)
{
    check_floats(what, digest(d, device, n * sizeof(float)), expected, n);
}

void expect_host_bits(struct device *d, const char *what, struct operand x)
{
    check_floats(what, digest_operand(d, x), x.host, x.n);
}

void expect_equal_bits(struct device *d, const char *what, struct operand x, struct operand other)
{
    check_floats(what, digest_operand(d, x), operand_values(d, other), x.n < other.n ? x.n : other.n);
}

void expect_integers(struct device *d, const char *what, const void *device, const int32_t *expected, size_t n)
{
    const int32_t *got = digest(d, device, n * sizeof *got);
    for (size_t i = 0; i < n; i++)
        if (got[i] != expected[i])
            fail_msg("%s: value %zu of %zu: expected %d, found %d", what, i, n, expected[i], got[i]);
}

void expect_dispatch(struct device *d, const struct dispatch *got, const struct dispatch *want)
{
    size_t choices = want->samples * want->top_k, slots = (size_t)want->offsets[want->experts];
    expect_integers(d, "chosen experts", got->chosen, want->chosen, choices);
    expect_integers(d, "first slots", got->offsets, want->offsets, want->experts + 1);
    expect_integers(d, "slots", got->slot, want->slot, choices);
    expect_integers(d, "samples by slot", got->sample, want->sample, slots);
    expect_integers(d, "choices by slot", got->choice, want->choice, slots);
}

struct tallies take_tallies(struct device *d)
{
    struct tallies t;
    for (int32_t e = 0; e < TALLIED_EXPERTS; e++) {
        t.counts[e] = 100 + e;
        t.used[e] = 1;
        t.frozen[e] = e % 3 == 2;
    }
    t.device_counts = to_device(d, t.counts, sizeof t.counts);
    t.device_used = to_device(d, t.used, sizeof t.used);
    t.device_frozen = to_device(d, t.frozen, sizeof t.frozen);
    return t;
}

void expect_tallies(struct device *d, struct tallies *t, const struct dispatch *want, const double *gates,
                    bool add_used)
{
    for (size_t e = 0; e < want->experts; e++) {
        t->used[e] = (add_used && t->used[e]) || (want->offsets[e + 1] > want->offsets[e] && !t->frozen[e]);
        for (int32_t s = want->offsets[e]; s < want->offsets[e + 1]; s++)
            t->counts[e] += (float)gates[want->choice[s]] > 0; /* it may be too small for a float: used all the same */
    }
    expect_integers(d, "counts", t->device_counts, t->counts, want->experts);
    expect_integers(d, "used and not frozen", t->device_used, t->used, want->experts);
}

void expect_slopes(struct device *d, const char *what, const float *got, float *values, size_t n, float h,
                   double (*loss)(void *context), void *context)
{
    double *expected = doubles(d, NULL, n);
    for (size_t i = 0; i < n; i++) {
        float before = values[i], above = before + h, below = before - h;
        values[i] = above;
        expected[i] = loss(context);
        values[i] = below;
        expected[i] = 1 + (expected[i] - loss(context)) / ((double)above - (double)below);
        values[i] = before;
    }
    expect_close(d, what, got, expected, n, 1e-4);
}

void check_gradient(struct device *d, const char *name, float *values, const float *gradient, size_t n,
                    float (*loss)(void *context), void *context)
{
    struct arena_mark mark = arena_mark(&d->host);
    const float *before = from_device(d, values, n * sizeof *values),
                *slope = from_device(d, gradient, n * sizeof *values);
    float *moved = from_device(d, values, n * sizeof *values);
    double norm = 0, sides[2];
    for (size_t i = 0; i < n; i++)
        norm += (double)slope[i] * (double)slope[i];
    norm = sqrt(norm);
    if (!(norm > 1e-6))
        fail_msg("%s: no gradient", name);
    for (int side = 0; side < 2; side++) {
        float h = (side == 0 ? 1.0f : -1.0f) * 0.001f / (float)norm;
        for (size_t i = 0; i < n; i++)
            moved[i] = before[i] + h * slope[i];
        must(d->ops->upload(d->backend, values, moved, n * sizeof *moved, &error));
        sides[side] = (double)loss(context);
    }
    must(d->ops->upload(d->backend, values, before, n * sizeof *before, &error));
    arena_release(&d->host, mark);
    double numeric = (sides[0] - sides[1]) / 0.002, deviation = fabs(numeric - norm);
    if (!(deviation < 0.02 * norm + 5e-4))
        fail_msg("%s: gradient %g along itself, central difference %g", name, norm, numeric);
}
