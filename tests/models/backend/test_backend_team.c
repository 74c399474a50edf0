/* Sums over several devices, each with a thread of its own. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/models/device.h"

enum { MOST = 3, VALUES = 197 };

struct member {
    struct device d;
    const struct team *team;
    size_t number;
    float *floats; /* device */
    int32_t *sums, *maxima;
    struct {
        float floats[VALUES];
        int32_t sums[VALUES], maxima[VALUES];
    } host; /* the results */
    status result;
    struct error failure;
};

static status reduce(struct member *m, enum reduction reduction, void *values, size_t n)
{
    return m->d.ops->all_reduce(
        m->d.backend,
        &(struct all_reduce){.team = m->team, .member = m->number, .reduction = reduction, .values = values, .n = n},
        &m->failure);
}

static status read_results(struct member *m)
{
    TRY(m->d.ops->download(m->d.backend, m->host.floats, m->floats, sizeof m->host.floats, &m->failure));
    TRY(m->d.ops->download(m->d.backend, m->host.sums, m->sums, sizeof m->host.sums, &m->failure));
    return m->d.ops->download(m->d.backend, m->host.maxima, m->maxima, sizeof m->host.maxima, &m->failure);
}

static void *work(void *context)
{
    struct member *m = context;
    m->result = m->d.ops->bind(m->d.backend, &m->failure);
    if (m->result == OK)
        m->result = reduce(m, SUM_FLOATS, m->floats, VALUES);
    if (m->result == OK)
        m->result = reduce(m, SUM_INTEGERS, m->sums, VALUES);
    if (m->result == OK)
        m->result = reduce(m, MAX_INTEGERS, m->maxima, VALUES);
    if (m->result == OK)
        m->result = reduce(m, SUM_FLOATS, m->floats, 2); /* fewer values than some teams have members */
    if (m->result == OK)
        m->result = read_results(m);
    return NULL;
}

static void open_members(struct member *members, struct team *team)
{
    struct backend *backends[MOST];
    for (size_t m = 0; m < team->size; m++) {
        device_open_at(&members[m].d, 1, m);
        backends[m] = members[m].d.backend;
        members[m].number = m;
        members[m].team = team;
    }
    must(backends[0]->ops->team_create(backends, team, &error));
}

static void close_members(struct member *members, struct team *team)
{
    size_t size = team->size;
    members[0].d.ops->team_destroy(members[0].d.backend, team);
    members[0].d.ops->team_destroy(members[0].d.backend, &(struct team){0});
    for (size_t m = 0; m < size; m++) {
        must(members[m].d.ops->bind(members[m].d.backend, &error));
        device_close(&members[m].d);
    }
}

static int32_t number_of(size_t member, size_t i)
{
    return (int32_t)((member + 1) * (i % 13)) - 20;
}

struct expected {
    float floats[VALUES];
    int32_t sums[VALUES], maxima[VALUES];
};

static void give_values(struct member *m, struct expected *expected)
{
    struct device *d = &m->d;
    int32_t own[VALUES];
    must(d->ops->bind(d->backend, &error));
    d->drawn = m->number * VALUES;
    struct operand drawn = draw(d, VALUES, 1.0f);
    for (size_t i = 0; i < VALUES; i++) {
        own[i] = number_of(m->number, i);
        expected->floats[i] = m->number == 0 ? drawn.host[i] : expected->floats[i] + drawn.host[i];
        expected->sums[i] += own[i];
        expected->maxima[i] = m->number == 0 || own[i] > expected->maxima[i] ? own[i] : expected->maxima[i];
    }
    m->floats = drawn.device;
    m->sums = to_device(d, own, sizeof own);
    m->maxima = to_device(d, own, sizeof own);
}

static void expect_team_sums(size_t size)
{
    struct member members[MOST] = {0};
    struct team team = {.size = size};
    struct expected expected = {0};
    pthread_t threads[MOST];
    open_members(members, &team);
    for (size_t m = 0; m < size; m++)
        give_values(&members[m], &expected);
    for (size_t i = 0; i < 2; i++) { /* those that are summed twice */
        float once = expected.floats[i];
        for (size_t m = 1; m < size; m++)
            expected.floats[i] += once;
    }
    for (size_t m = 0; m < size; m++)
        assert_int_equal(pthread_create(&threads[m], NULL, work, &members[m]), 0);
    for (size_t m = 0; m < size; m++)
        pthread_join(threads[m], NULL);
    for (size_t m = 0; m < size; m++) {
        if (members[m].result != OK)
            fail_msg("member %zu: %s", m, members[m].failure.message);
        for (size_t i = 0; i < VALUES; i++) /* NCCL's ring begins with another member for each part */
            assert_true(fabsf(members[m].host.floats[i] - expected.floats[i]) <= 1e-5f);
        assert_memory_equal(members[m].host.floats, members[0].host.floats, sizeof expected.floats);
        assert_memory_equal(members[m].host.sums, expected.sums, sizeof expected.sums);
        assert_memory_equal(members[m].host.maxima, expected.maxima, sizeof expected.maxima);
    }
    close_members(members, &team);
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

static void every_member_gets_the_sum(void **state)
{
    (void)state;
    for (size_t size = 1; size <= devices(); size++)
        expect_team_sums(size);
}

/* A member that waits for one that never comes is freed. */
static void a_team_can_be_given_up(void **state)
{
    (void)state;
    if (devices() < 2)
        skip();
    struct member members[MOST] = {0};
    struct team team = {.size = 2};
    struct expected expected = {0};
    pthread_t thread;
    open_members(members, &team);
    give_values(&members[0], &expected);
    assert_int_equal(pthread_create(&thread, NULL, work, &members[0]), 0);
    usleep(20000);
    members[1].d.ops->team_abort(members[1].d.backend, &team);
    pthread_join(thread, NULL);
    close_members(members, &team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_gets_the_sum),
        cmocka_unit_test(a_team_can_be_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
