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

const char *test_backend_name(void)
{
    const char *name = getenv("MTIL_TEST_BACKEND");
    return name != NULL && name[0] != '\0' ? name : "cpu";
}

void device_open(struct device *d, size_t threads)
{
    device_open_at(d, threads, 0);
}

void device_open_at(struct device *d, size_t threads, size_t device)
{
    const struct backend_settings settings = {.name = test_backend_name(), .threads = threads, .device = device};
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
    for (size_t threads = 1; threads <= 3; threads++) {
        struct device d;
        device_open(&d, threads);
        body(&d, parameters);
        if (threads > 1 && d.bits != bits)
            fail_msg("the results of %zu threads differ from those of one", threads);
        bits = d.bits;
        device_close(&d);
    }
}

static void *host_room(struct device *d, size_t bytes)
{
    void *memory = arena_take_zeroed(&d->host, bytes);
    if (memory == NULL)
        fail_msg("no memory for %zu bytes", bytes);
    return memory;
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

void *from_device(struct device *d, const void *device, size_t bytes)
{
    void *memory = host_room(d, bytes);
    must(d->ops->download(d->backend, memory, device, bytes, &error));
    return memory;
}

struct operand draw(struct device *d, size_t n, float deviation)
{
    struct operand operand = {.host = host_room(d, n * sizeof(float))};
    struct rng rng = rng_make(11, RNG_TEST, 0, 0);
    for (size_t i = 0; i < n; i++)
        operand.host[i] = deviation * rng_normal(&rng, d->drawn++);
    operand.device = to_device(d, operand.host, n * sizeof(float));
    return operand;
}

struct operand blank(struct device *d, size_t n)
{
    struct operand operand = {.host = host_room(d, n * sizeof(float))};
    for (size_t i = 0; i < n; i++)
        operand.host[i] = -1e30f;
    operand.device = to_device(d, operand.host, n * sizeof(float));
    return operand;
}

double *doubles(struct device *d, const float *values, size_t n)
{
    double *wide = host_room(d, n * sizeof *wide);
    for (size_t i = 0; values != NULL && i < n; i++)
        wide[i] = (double)values[i];
    return wide;
}

/* FNV-1a */
const void *digest(struct device *d, const void *device, size_t bytes)
{
    const uint8_t *values = from_device(d, device, bytes);
    for (size_t i = 0; i < bytes; i++)
        d->bits = (d->bits ^ values[i]) * 1099511628211u;
    return values;
}

void expect_close(struct device *d, const char *what, const void *device, const double *expected, size_t n,
                  double tolerance)
{
    const float *got = digest(d, device, n * sizeof *got);
    double largest = 1;
    for (size_t i = 0; i < n; i++)
        largest = fabs(expected[i]) > largest ? fabs(expected[i]) : largest;
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - expected[i]) <= tolerance * largest))
            fail_msg("%s: value %zu of %zu: expected %.9g, found %.9g, tolerance %.3g", what, i, n, expected[i],
                     (double)got[i], tolerance * largest);
}

void expect_floats(struct device *d, const char *what, const void *device, const float *expected, size_t n)
{
    const float *got = digest(d, device, n * sizeof *got);
    for (size_t i = 0; i < n; i++)
        if (memcmp(&got[i], &expected[i], sizeof *got) != 0)
            fail_msg("%s: value %zu of %zu: expected %.9g, found %.9g", what, i, n, (double)expected[i],
                     (double)got[i]);
}

void expect_integers(struct device *d, const char *what, const void *device, const int32_t *expected, size_t n)
{
    const int32_t *got = digest(d, device, n * sizeof *got);
    for (size_t i = 0; i < n; i++)
        if (got[i] != expected[i])
            fail_msg("%s: value %zu of %zu: expected %d, found %d", what, i, n, expected[i], got[i]);
}
