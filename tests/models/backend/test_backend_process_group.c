/* Sums over several devices, each with a thread of its own. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/models/device.h"

enum { MOST = 3, VALUES = 197 };

struct values {
    float floats[VALUES];
    int32_t sums[VALUES], maxima[VALUES];
};

struct rank {
    struct device d;
    const struct process_group *group;
    size_t rank;
    struct values *values; /* device */
    struct values results;
    status result;
    struct error failure;
};

static status reduce(struct rank *m, enum reduction reduction, void *values, size_t n)
{
    return m->d.ops->all_reduce(
        m->d.backend,
        &(struct all_reduce){.group = m->group, .rank = m->rank, .reduction = reduction, .values = values, .n = n},
        &m->failure);
}

static status reduce_all(struct rank *m)
{
    TRY(m->d.ops->bind(m->d.backend, &m->failure));
    TRY(reduce(m, SUM_FLOATS, m->values->floats, VALUES));
    TRY(reduce(m, SUM_INTEGERS, m->values->sums, VALUES));
    TRY(reduce(m, MAX_INTEGERS, m->values->maxima, VALUES));
    TRY(reduce(m, SUM_FLOATS, m->values->floats, 2)); /* fewer values than some groups have ranks */
    return m->d.ops->download(m->d.backend, &m->results, m->values, sizeof m->results, &m->failure);
}

static void *work(void *context)
{
    struct rank *m = context;
    m->result = reduce_all(m);
    return NULL;
}

static void open_ranks(struct rank *ranks, struct process_group *group)
{
    struct backend *backends[MOST];
    for (size_t m = 0; m < group->size; m++) {
        device_open_at(&ranks[m].d, 1, m);
        backends[m] = ranks[m].d.backend;
        ranks[m].rank = m;
        ranks[m].group = group;
    }
    status created = backends[0]->ops->process_group_create(backends, group, &error);
    if (created == ERROR_DEVICE && strstr(error.message, "built without NCCL") != NULL) {
        fprintf(stderr, "skipped, %s\n", error.message);
        exit(77);
    }
    must(created);
}

static void close_ranks(struct rank *ranks, struct process_group *group)
{
    size_t size = group->size;
    ranks[0].d.ops->process_group_destroy(ranks[0].d.backend, group);
    ranks[0].d.ops->process_group_destroy(ranks[0].d.backend, &(struct process_group){0});
    for (size_t m = 0; m < size; m++) {
        must(ranks[m].d.ops->bind(ranks[m].d.backend, &error));
        device_close(&ranks[m].d);
    }
}

static int32_t number_of(size_t rank, size_t i)
{
    return (int32_t)((rank + 1) * (i % 13)) - 20;
}

static void give_values(struct rank *m, struct values *expected)
{
    struct device *d = &m->d;
    struct values own;
    must(d->ops->bind(d->backend, &error));
    d->drawn = m->rank * VALUES;
    memcpy(own.floats, draw(d, VALUES, 1.0f).host, sizeof own.floats);
    for (size_t i = 0; i < VALUES; i++) {
        own.sums[i] = own.maxima[i] = number_of(m->rank, i);
        expected->floats[i] = m->rank == 0 ? own.floats[i] : expected->floats[i] + own.floats[i];
        expected->sums[i] += own.sums[i];
        expected->maxima[i] = m->rank == 0 || own.maxima[i] > expected->maxima[i] ? own.maxima[i] : expected->maxima[i];
    }
    m->values = to_device(d, &own, sizeof own);
}

static void expect_sums(size_t size)
{
    struct rank ranks[MOST] = {0};
    struct process_group group = {.size = size};
    struct values expected = {0};
    pthread_t threads[MOST];
    open_ranks(ranks, &group);
    for (size_t m = 0; m < size; m++)
        give_values(&ranks[m], &expected);
    for (size_t i = 0; i < 2; i++) { /* those that are summed twice */
        float once = expected.floats[i];
        for (size_t m = 1; m < size; m++)
            expected.floats[i] += once;
    }
    for (size_t m = 0; m < size; m++)
        assert_int_equal(pthread_create(&threads[m], NULL, work, &ranks[m]), 0);
    for (size_t m = 0; m < size; m++)
        pthread_join(threads[m], NULL);
    for (size_t m = 0; m < size; m++) {
        if (ranks[m].result != OK)
            fail_msg("rank %zu: %s", m, ranks[m].failure.message);
        for (size_t i = 0; i < VALUES; i++) /* NCCL's ring begins with another rank for each part */
            assert_true(fabsf(ranks[m].results.floats[i] - expected.floats[i]) <= 1e-5f);
        assert_memory_equal(ranks[m].results.floats, ranks[0].results.floats, sizeof expected.floats);
        assert_memory_equal(ranks[m].results.sums, expected.sums, sizeof expected.sums);
        assert_memory_equal(ranks[m].results.maxima, expected.maxima, sizeof expected.maxima);
    }
    close_ranks(ranks, &group);
}

static size_t devices(void)
{
    struct gpus gpus;
    if (strcmp(test_backend_name(), "cpu") == 0)
        return MOST;
    if (backend_gpus(&gpus, &error) != OK) {
        fprintf(stderr, "skipped, %s\n", error.message);
        exit(77);
    }
    return gpus.count < MOST ? gpus.count : MOST;
}

TEST(every_rank_gets_the_sum)
{
    for (size_t size = 1; size <= devices(); size++)
        expect_sums(size);
}

/* A rank that waits for one that never comes is freed. */
TEST(a_process_group_can_be_aborted)
{
    if (devices() < 2)
        skip();
    struct rank ranks[MOST] = {0};
    struct process_group group = {.size = 2};
    struct values expected = {0};
    pthread_t thread;
    open_ranks(ranks, &group);
    give_values(&ranks[0], &expected);
    assert_int_equal(pthread_create(&thread, NULL, work, &ranks[0]), 0);
    usleep(20000);
    ranks[1].d.ops->process_group_abort(ranks[1].d.backend, &group);
    pthread_join(thread, NULL);
    close_ranks(ranks, &group);
}
