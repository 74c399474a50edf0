/* What travels to the device and back beside computing, what runs side by side, and what is recorded and repeated. */
#include <math.h>
#include <string.h>

#include "tests/models/device.h"

enum { VALUES = 65 };

/* Host memory may change as soon as an upload has returned, however many follow. */
DEVICE_TEST(uploads_in_a_row)
{
    enum { UPLOADS = 300 };
    int32_t *device = room(d, UPLOADS * sizeof *device), expected[UPLOADS], value;
    for (int32_t i = 0; i < UPLOADS; i++) {
        value = 3 * i + 1;
        must(d->ops->upload(d->backend, device + i, &value, sizeof value, &error));
        expected[i] = value;
    }
    value = -1;
    expect_integers(d, "uploads", device, expected, UPLOADS);
}

/* Entries of different sizes, always one ahead of the one in use, summed up on the device. */
DEVICE_TEST(entries_in_a_row)
{
    enum { ENTRIES = 9 };
    struct staging_queue queue;
    double expected[VALUES] = {0}, last[VALUES] = {0};
    float *sum = room(d, VALUES * sizeof *sum), *own = room(d, VALUES * sizeof *own);
    must(d->ops->staging_open(d->backend, &queue, VALUES * sizeof(float), &error));
    for (size_t entry = 0; entry <= ENTRIES; entry++) {
        if (entry > 0) {
            size_t bytes = (VALUES - (entry - 1) % 3) * sizeof *own;
            const void *device;
            must(d->ops->staging_receive(d->backend, &queue, &device, &error));
            must(d->ops->copy(d->backend, own, device, bytes, &error));
            must(d->ops->staging_release(d->backend, &queue, &error));
            struct weighted_sum add = {.count = 2, .n = VALUES, .inputs = {sum, own}, .weights = {1, 1}, .out = sum};
            must(d->ops->weighted_sum(d->backend, &add, &error));
            for (size_t i = 0; i < VALUES; i++) /* what a shorter entry leaves is from the one before */
                expected[i] += last[i] = i < bytes / sizeof *own ? (double)(100 * (entry - 1) + i) : last[i];
        }
        if (entry == ENTRIES)
            break;
        void *host;
        size_t count = VALUES - entry % 3;
        must(d->ops->staging_acquire(d->backend, &queue, &host, &error));
        for (size_t i = 0; i < count; i++)
            ((float *)host)[i] = (float)(100 * entry + i);
        must(d->ops->staging_send(d->backend, &queue, count * sizeof(float), &error));
    }
    expect_close(d, "sum of the entries", sum, expected, VALUES, 1e-6);
    d->ops->staging_close(d->backend, &queue);
    d->ops->staging_close(d->backend, &(struct staging_queue){0});
}

DEVICE_TEST(two_loads_may_be_on_their_way)
{
    struct staging_queue queue;
    int32_t *own = room(d, 2 * sizeof *own);
    const int32_t expected[2] = {7, 8};
    must(d->ops->staging_open(d->backend, &queue, sizeof *own, &error));
    for (int i = 0; i < STAGING_SLOTS; i++) {
        void *host;
        must(d->ops->staging_acquire(d->backend, &queue, &host, &error));
        *(int32_t *)host = expected[i];
        must(d->ops->staging_send(d->backend, &queue, sizeof *own, &error));
    }
    for (int i = 0; i < STAGING_SLOTS; i++) {
        const void *device;
        must(d->ops->staging_receive(d->backend, &queue, &device, &error));
        must(d->ops->copy(d->backend, own + i, device, sizeof *own, &error));
        must(d->ops->staging_release(d->backend, &queue, &error));
    }
    expect_integers(d, "entries", own, expected, 2);
    d->ops->staging_close(d->backend, &queue);
}

/* An entry has the values of the time when it was copied, though the device goes on changing them, and is read while the next
 * one is on its way. */
DEVICE_TEST(results_come_later)
{
    enum { ENTRIES = 7 };
    struct fetch_queue queue;
    float *y = room(d, VALUES * sizeof *y), value = 1;
    struct weighted_sum twice = {.count = 1, .n = VALUES, .inputs = {y}, .weights = {2}, .out = y};
    for (size_t i = 0; i < VALUES; i++)
        must(d->ops->upload(d->backend, y + i, &value, sizeof value, &error));
    must(d->ops->fetch_open(d->backend, &queue, (VALUES + 1) * sizeof *y, &error));
    for (size_t entry = 0; entry <= ENTRIES; entry++) {
        size_t count = VALUES - entry % 3,
               before = VALUES - (entry + 2) % 3; /* parts of entries: some values, and one */
        if (entry < ENTRIES) {
            must(d->ops->fetch_copy(d->backend, &queue, y, count * sizeof *y, &error));
            must(d->ops->weighted_sum(d->backend, &twice, &error));
            must(d->ops->fetch_copy(d->backend, &queue, y, sizeof *y, &error));
            must(d->ops->fetch_send(d->backend, &queue, &error));
            must(d->ops->weighted_sum(d->backend, &twice, &error));
        }
        if (entry == 0)
            continue;
        const void *host;
        must(d->ops->fetch_take(d->backend, &queue, &host, &error));
        for (size_t i = 0; i <= before; i++)
            assert_float_equal(((const float *)host)[i], ldexpf(i < before ? 1 : 2, 2 * ((int)entry - 1)), 0);
    }
    d->ops->fetch_close(d->backend, &queue);
    d->ops->fetch_close(d->backend, &(struct fetch_queue){0});
}

/* --- Branches --- */

/* sums += columns of x, x ← 2 x, some times; the sums of so many rows need scratch memory between two kernels. */
enum { ROWS = 600, COLUMNS = 8 };
struct sums {
    struct device *d;
    float *x, *sums;
    bool fails;
};

static status add_sums(void *context, struct error *failure)
{
    enum { TIMES = 3 };
    const struct sums *s = context;
    struct column_sum sum = {.x = matrix_rows(s->x, ROWS, COLUMNS), .out = s->sums};
    struct weighted_sum twice = {.count = 1, .n = ROWS * COLUMNS, .inputs = {s->x}, .weights = {2}, .out = s->x};
    for (int i = 0; i < TIMES; i++) {
        TRY(s->d->ops->column_sum(s->d->backend, &sum, failure));
        TRY(s->d->ops->weighted_sum(s->d->backend, &twice, failure));
    }
    return s->fails ? error_set(failure, ERROR_ARGUMENT, "as told") : OK;
}

static status add_both(void *context, struct error *failure)
{
    struct sums *both = context;
    struct branches branches = {{{add_sums, &both[0]}, {add_sums, &both[1]}}};
    return both[0].d->ops->branches(both[0].d->backend, &branches, failure);
}

static void take_sums(struct device *d, struct sums sums[2])
{
    for (int i = 0; i < 2; i++) {
        struct operand x = draw(d, ROWS * COLUMNS, 1.0f);
        sums[i] = (struct sums){.d = d, .x = x.device, .sums = room(d, COLUMNS * sizeof(float))};
        must(d->ops->zero(d->backend, sums[i].sums, COLUMNS * sizeof(float), &error));
    }
}

/* Of the same values, one body after the other. */
static void copy_sums(struct device *d, struct sums to[2], const struct sums from[2])
{
    take_sums(d, to);
    for (int i = 0; i < 2; i++)
        must(d->ops->copy(d->backend, to[i].x, from[i].x, ROWS * COLUMNS * sizeof(float), &error));
}

static void expect_same_sums(struct device *d, const struct sums found[2], const struct sums expected[2])
{
    for (int i = 0; i < 2; i++)
        expect_floats(d, "sums of a branch", found[i].sums, from_device(d, expected[i].sums, COLUMNS * sizeof(float)),
                      COLUMNS);
}

/* Side by side, recorded and replayed: the bits of one after the other, also for what follows both. */
DEVICE_TEST(branches_give_the_same_bits)
{
    enum { LAUNCHES = 7 };
    struct sums branches[2], plain[2];
    struct recording recording = {0};
    take_sums(d, branches);
    copy_sums(d, plain, branches);
    for (int i = 0; i < LAUNCHES; i++) {
        for (int k = 0; k < 2; k++)
            must(add_sums(&plain[k], &error));
        if (i == 0)
            must(add_both(branches, &error));
        else if (i == 1)
            must(d->ops->record(d->backend, &recording, add_both, branches, &error));
        else if (recording.owner != NULL)
            must(d->ops->replay(d->backend, &recording, &error));
        else
            must(add_both(branches, &error));
        expect_same_sums(d, branches, plain);
    }
    assert_true((recording.owner != NULL) == (strcmp(d->ops->name, "cpu") != 0));
    d->ops->recording_destroy(d->backend, &recording);
}

/* Either body; the streams are together again afterwards. */
DEVICE_TEST(a_branch_that_fails_is_told)
{
    for (int failing = 0; failing < 2; failing++) {
        struct sums branches[2], plain[2];
        struct recording recording = {0};
        take_sums(d, branches);
        branches[failing].fails = true;
        assert_int_equal(add_both(branches, &error), ERROR_ARGUMENT);
        assert_int_equal(d->ops->record(d->backend, &recording, add_both, branches, &error), ERROR_ARGUMENT);
        assert_null(recording.owner);
        take_sums(d, branches);
        copy_sums(d, plain, branches);
        must(d->ops->record(d->backend, &recording, add_both, branches, &error));
        for (int k = 0; k < 2; k++)
            must(add_sums(&plain[k], &error));
        expect_same_sums(d, branches, plain);
        d->ops->recording_destroy(d->backend, &recording);
    }
}

/* --- Recording --- */

/* y ← 2 y + x Wᵀ */
struct repeated {
    struct device *d;
    struct operand x, weight;
    float *y;
    size_t runs;
    bool downloads, grows;
};

static status repeat(void *context, struct error *failure)
{
    struct repeated *r = context;
    struct backend *backend = r->d->backend;
    float value;
    r->runs++;
    TRY(r->d->ops->weighted_sum(
        backend, &(struct weighted_sum){.count = 1, .n = 8 * 8, .inputs = {r->y}, .weights = {2}, .out = r->y},
        failure));
    if (r->downloads)
        TRY(r->d->ops->download(backend, &value, r->y, sizeof value, failure));
    if (r->grows && arena_take(&r->d->memory, (size_t)64 << 20) == NULL)
        return error_set(failure, ERROR_MEMORY, "no memory is mapped while operations are recorded");
    return r->d->ops->gemm(backend,
                           &(struct gemm){.a = matrix_rows(r->x.device, 8, 8),
                                          .b = matrix_rows(r->weight.device, 8, 8),
                                          .transpose_b = true,
                                          .accumulate = true,
                                          .out = matrix_rows(r->y, 8, 8)},
                           failure);
}

static struct repeated repeated_on(struct device *d)
{
    return (struct repeated){
        .d = d, .x = draw(d, 64, 1.0f), .weight = draw(d, 64, 1.0f), .y = room(d, 64 * sizeof(float))};
}

/* y after each of `times` steps with other inputs, once recorded and once plainly: the same bits. */
static void expect_same_as_plain(struct device *d, struct repeated *r, size_t times, bool recorded)
{
    struct recording recording = {0};
    float *plain = room(d, 64 * sizeof *plain), *replayed = r->y;
    must(d->ops->copy(d->backend, plain, r->y, 64 * sizeof *plain, &error));
    for (size_t i = 0; i < times; i++) {
        struct operand x = draw(d, 64, 1.0f);
        must(d->ops->copy(d->backend, r->x.device, x.device, 64 * sizeof(float), &error));
        r->y = plain;
        must(repeat(r, &error));
        r->y = replayed;
        if (i == 0)
            must(d->ops->record(d->backend, &recording, repeat, r, &error));
        else if (recording.owner != NULL)
            must(d->ops->replay(d->backend, &recording, &error));
        else
            must(repeat(r, &error));
        expect_floats(d, "repeated", replayed, from_device(d, plain, 64 * sizeof(float)), 64);
    }
    if (strcmp(d->ops->name, "cpu") != 0)
        assert_true((recording.owner != NULL) == recorded);
    else
        assert_null(recording.owner);
    d->ops->recording_destroy(d->backend, &recording);
    d->ops->recording_destroy(d->backend, &recording);
}

DEVICE_TEST(replayed_with_other_values)
{
    struct repeated r = repeated_on(d);
    expect_same_as_plain(d, &r, 5, true);
    if (strcmp(d->ops->name, "cpu") != 0)
        assert_int_equal(r.runs, 5 + 1); /* each plain one, and what was recorded */
}

DEVICE_TEST(what_cannot_be_recorded_runs_plainly)
{
    struct repeated r = repeated_on(d);
    r.downloads = true;
    expect_same_as_plain(d, &r, 2, false);
    r = repeated_on(d);
    r.grows = true;
    struct recording recording = {0};
    must(d->ops->record(d->backend, &recording, repeat, &r, &error));
    assert_null(recording.owner);
    if (strcmp(d->ops->name, "cpu") != 0)
        assert_int_not_equal(recording.refused.code, OK);
    r.grows = false;
    expect_same_as_plain(d, &r, 2, true);
}

/* The second failure is the one that is reported; nothing stays half recorded. */
static status always_fails(void *context, struct error *failure)
{
    size_t *runs = context;
    ++*runs;
    return error_set(failure, ERROR_ARGUMENT, "failure %zu", *runs);
}

DEVICE_TEST(a_body_that_fails_is_told)
{
    struct recording recording = {0};
    size_t runs = 0;
    assert_int_equal(d->ops->record(d->backend, &recording, always_fails, &runs, &error), ERROR_ARGUMENT);
    assert_null(recording.owner);
    struct repeated r = repeated_on(d);
    expect_same_as_plain(d, &r, 2, true);
}
