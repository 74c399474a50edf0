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

/* Entries of different sizes, as many ahead of the one in use as may be on their way, summed up on the device. */
static void entries_ahead(struct device *d, size_t ahead)
{
    enum { ENTRIES = 9 };
    struct transfer_queue queue;
    double expected[VALUES] = {0}, last[VALUES] = {0};
    float *sum = room(d, VALUES * sizeof *sum), *own = room(d, VALUES * sizeof *own);
    must(d->ops->queue_open(d->backend, &queue, TO_DEVICE, VALUES * sizeof(float), &error));
    for (size_t entry = 0; entry < ENTRIES + ahead; entry++) {
        if (entry >= ahead) {
            size_t received = entry - ahead, count = VALUES - received % 3;
            const void *device;
            must(d->ops->staging_receive(d->backend, &queue, &device, &error));
            must(d->ops->copy(d->backend, own, device, count * sizeof *own, &error));
            must(d->ops->staging_release(d->backend, &queue, &error));
            must_run(d, weighted_sum, .count = 2, .n = VALUES, .inputs = {sum, own}, .weights = {1, 1}, .out = sum);
            for (size_t i = 0; i < VALUES; i++) /* what a shorter entry leaves is from the one before */
                expected[i] += last[i] = i < count ? (double)(100 * received + i) : last[i];
        }
        if (entry >= ENTRIES)
            continue;
        void *host;
        size_t count = VALUES - entry % 3;
        must(d->ops->staging_acquire(d->backend, &queue, &host, &error));
        for (size_t i = 0; i < count; i++)
            ((float *)host)[i] = (float)(100 * entry + i);
        must(d->ops->staging_send(d->backend, &queue, count * sizeof(float), &error));
    }
    expect_close(d, "sum of the entries", sum, expected, VALUES, 1e-6);
    d->ops->queue_close(d->backend, &queue);
    d->ops->queue_close(d->backend, &(struct transfer_queue){0});
}

DEVICE_TEST(entries_in_a_row)
{
    for (size_t ahead = 1; ahead <= TRANSFER_SLOTS; ahead++)
        entries_ahead(d, ahead);
}

/* An entry has the values of the time when it was copied, though the device goes on changing them, and is read while the next
 * one is on its way. */
DEVICE_TEST(results_come_later)
{
    enum { ENTRIES = 7 };
    struct transfer_queue queue;
    float *y = room(d, VALUES * sizeof *y), value = 1;
    struct weighted_sum twice = {.count = 1, .n = VALUES, .inputs = {y}, .weights = {2}, .out = y};
    for (size_t i = 0; i < VALUES; i++)
        must(d->ops->upload(d->backend, y + i, &value, sizeof value, &error));
    must(d->ops->queue_open(d->backend, &queue, TO_HOST, (VALUES + 1) * sizeof *y, &error));
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
    d->ops->queue_close(d->backend, &queue);
    d->ops->queue_close(d->backend, &(struct transfer_queue){0});
}

/* --- Work that is recorded, and work side by side --- */

/* Some times: sums += columns of y, y ← 2 y + x Wᵀ. The sums of so many rows need scratch memory between two kernels. */
enum { ROWS = 600, COLUMNS = 8, N = ROWS * COLUMNS };
struct work {
    struct device *d;
    float *x, *weight, *y, *sums;
    size_t runs;
    bool downloads, grows, fails;
};

static status run_once(void *context, struct error *failure)
{
    enum { TIMES = 3 };
    struct work *w = context;
    const struct backend_ops *ops = w->d->ops;
    struct backend *backend = w->d->backend;
    struct matrix y = matrix_rows(w->y, ROWS, COLUMNS);
    struct column_sum sum = {.x = y, .out = w->sums};
    struct weighted_sum twice = {.count = 1, .n = N, .inputs = {w->y}, .weights = {2}, .out = w->y};
    struct gemm product = {.a = matrix_rows(w->x, ROWS, COLUMNS),
                           .b = matrix_rows(w->weight, COLUMNS, COLUMNS),
                           .transpose_b = true,
                           .accumulate = true,
                           .out = y};
    w->runs++;
    for (int i = 0; i < TIMES; i++) {
        TRY(ops->column_sum(backend, &sum, failure));
        TRY(ops->weighted_sum(backend, &twice, failure));
        TRY(ops->gemm(backend, &product, failure));
    }
    if (w->downloads)
        TRY(ops->download(backend, &(float){0}, w->y, sizeof(float), failure));
    if (w->grows && arena_take(&w->d->memory, (size_t)64 << 20) == NULL)
        return error_set(failure, ERROR_MEMORY, "no memory is mapped while operations are recorded");
    return w->fails ? error_set(failure, ERROR_ARGUMENT, "as told") : OK;
}

static status run_both(void *context, struct error *failure)
{
    struct work *both = context;
    struct branches branches = {{{run_once, &both[0]}, {run_once, &both[1]}}};
    return both[0].d->ops->branches(both[0].d->backend, &branches, failure);
}

static struct work make_work(struct device *d)
{
    return (struct work){.d = d,
                         .x = draw(d, N, 1.0f).device,
                         .weight = draw(d, COLUMNS * COLUMNS, 1.0f).device,
                         .y = room(d, N * sizeof(float)),
                         .sums = room(d, COLUMNS * sizeof(float))};
}

/* One piece of work, or two of them side by side, several times with other inputs: first as it is, then recorded, then replayed;
 * each time with the bits of what runs plainly, one after the other. */
static void expect_same_as_plain(struct device *d, struct work *work, size_t count, bool recorded)
{
    enum { TIMES = 6 };
    struct work plain[2];
    struct recording recording = {0};
    for (size_t k = 0; k < count; k++) {
        plain[k] = make_work(d);
        plain[k].weight = work[k].weight;
    }
    for (int i = 0; i < TIMES; i++) {
        for (size_t k = 0; k < count; k++) {
            plain[k].x = draw(d, N, 1.0f).device;
            must(d->ops->copy(d->backend, work[k].x, plain[k].x, N * sizeof(float), &error));
            must(run_once(&plain[k], &error));
        }
        run_again(d, &recording, i == 1, count > 1 ? run_both : run_once, work);
        for (size_t k = 0; k < count; k++) {
            expect_floats(d, "values", work[k].y, from_device(d, plain[k].y, N * sizeof(float)), N);
            expect_floats(d, "sums", work[k].sums, from_device(d, plain[k].sums, COLUMNS * sizeof(float)), COLUMNS);
        }
    }
    recorded = recorded && strcmp(d->ops->name, "cpu") != 0;
    assert_true((recording.owner != NULL) == recorded);
    if (recorded)
        assert_int_equal(work[0].runs, 2); /* once as it is, and what was recorded */
    d->ops->recording_destroy(d->backend, &recording);
    d->ops->recording_destroy(d->backend, &recording);
}

DEVICE_TEST(replayed_with_other_values)
{
    struct work work[] = {make_work(d), make_work(d), make_work(d)};
    expect_same_as_plain(d, work, 1, true);
    expect_same_as_plain(d, work + 1, 2, true);
}

DEVICE_TEST(what_cannot_be_recorded_runs_plainly)
{
    struct work work = make_work(d), growing = make_work(d), fresh = make_work(d);
    struct recording recording = {0};
    work.downloads = growing.grows = true;
    expect_same_as_plain(d, &work, 1, false);
    must(d->ops->record(d->backend, &recording, run_once, &growing, &error));
    assert_null(recording.owner);
    if (strcmp(d->ops->name, "cpu") != 0)
        assert_int_not_equal(recording.refused.code, OK);
    expect_same_as_plain(d, &fresh, 1, true);
}

/* By itself or as either branch; nothing stays half recorded, and the streams are together again. */
DEVICE_TEST(work_that_fails_is_told)
{
    for (size_t failing = 0; failing < 3; failing++) {
        struct work work[] = {make_work(d), make_work(d)}, fresh[] = {make_work(d), make_work(d)};
        struct recording recording = {0};
        recorded_body body = failing == 2 ? run_once : run_both;
        work[failing % 2].fails = true;
        assert_int_equal(body(work, &error), ERROR_ARGUMENT);
        assert_int_equal(d->ops->record(d->backend, &recording, body, work, &error), ERROR_ARGUMENT);
        assert_null(recording.owner);
        expect_same_as_plain(d, fresh, failing == 2 ? 1 : 2, true);
    }
}
