/* Sums over several devices, each with a thread of its own. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/models/device.h"

enum { MOST = 3, VALUES = 197 };

struct rank {
    struct device d;
    const struct process_group *group;
    size_t rank;
    float *floats; /* device */
    int32_t *sums, *maxima;
    struct {
        float floats[VALUES];
        int32_t sums[VALUES], maxima[VALUES];
    } host; /* the results */
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

static status read_results(struct rank *m)
{
    TRY(m->d.ops->download(m->d.backend, m->host.floats, m->floats, sizeof m->host.floats, &m->failure));
    TRY(m->d.ops->download(m->d.backend, m->host.sums, m->sums, sizeof m->host.sums, &m->failure));
    return m->d.ops->download(m->d.backend, m->host.maxima, m->maxima, sizeof m->host.maxima, &m->failure);
}

static void *work(void *context)
{
    struct rank *m = context;
    m->result = m->d.ops->bind(m->d.backend, &m->failure);
    if (m->result == OK)
        m->result = reduce(m, SUM_FLOATS, m->floats, VALUES);
    if (m->result == OK)
        m->result = reduce(m, SUM_INTEGERS, m->sums, VALUES);
    if (m->result == OK)
        m->result = reduce(m, MAX_INTEGERS, m->maxima, VALUES);
    if (m->result == OK)
        m->result = reduce(m, SUM_FLOATS, m->floats, 2); /* fewer values than some groups have ranks */
    if (m->result == OK)
        m->result = read_results(m);
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
    must(backends[0]->ops->process_group_create(backends, group, &error));
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

struct expected {
    float floats[VALUES];
    int32_t sums[VALUES], maxima[VALUES];
};

static void give_values(struct rank *m, struct expected *expected)
{
    struct device *d = &m->d;
    int32_t own[VALUES];
    must(d->ops->bind(d->backend, &error));
    d->drawn = m->rank * VALUES;
    struct operand drawn = draw(d, VALUES, 1.0f);
    for (size_t i = 0; i < VALUES; i++) {
        own[i] = number_of(m->rank, i);
        expected->floats[i] = m->rank == 0 ? drawn.host[i] : expected->floats[i] + drawn.host[i];
        expected->sums[i] += own[i];
        expected->maxima[i] = m->rank == 0 || own[i] > expected->maxima[i] ? own[i] : expected->maxima[i];
    }
    m->floats = drawn.device;
    m->sums = to_device(d, own, sizeof own);
    m->maxima = to_device(d, own, sizeof own);
}

static void expect_sums(size_t size)
{
    struct rank ranks[MOST] = {0};
    struct process_group group = {.size = size};
    struct expected expected = {0};
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
            assert_true(fabsf(ranks[m].host.floats[i] - expected.floats[i]) <= 1e-5f);
        assert_memory_equal(ranks[m].host.floats, ranks[0].host.floats, sizeof expected.floats);
        assert_memory_equal(ranks[m].host.sums, expected.sums, sizeof expected.sums);
        assert_memory_equal(ranks[m].host.maxima, expected.maxima, sizeof expected.maxima);
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
    struct expected expected = {0};
    pthread_t thread;
    open_ranks(ranks, &group);
    give_values(&ranks[0], &expected);
    assert_int_equal(pthread_create(&thread, NULL, work, &ranks[0]), 0);
    usleep(20000);
    ranks[1].d.ops->process_group_abort(ranks[1].d.backend, &group);
    pthread_join(thread, NULL);
    close_ranks(ranks, &group);
}
