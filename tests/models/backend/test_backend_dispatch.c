/* The way of the samples to their experts: random partitions, pairs of choices, and more samples than a grid is wide. */
#include "core/rng.h"
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"

struct partition_case {
    size_t samples, experts;
    enum { ALL, SOME, NONE } with_router;
};

static const struct partition_case partition_cases[] = {
    {1, 1, ALL},  {3, 5, ALL}, /* some experts get none */
    {24, 4, ALL}, {2003, 7, SOME}, {9, 2, NONE},
};

/* By definition: the group of each sample's place in the order of the numbers drawn. */
static void reference_partition(struct dispatch *want, const int32_t *router, const struct rng *rng, uint64_t base)
{
    size_t n = 0;
    for (size_t b = 0; b < want->samples; b++)
        n += router[b] >= 0;
    size_t larger = n % want->experts, each = n / want->experts;
    for (size_t b = 0; b < want->samples; b++) {
        size_t before = 0, e = 0, end = each + (larger > 0);
        uint32_t own = rng_uint32(rng, base + b);
        for (size_t other = 0; other < want->samples; other++) {
            uint32_t number = rng_uint32(rng, base + other);
            before += router[other] >= 0 && (number < own || (number == own && other < b));
        }
        while (router[b] >= 0 && before >= end) {
            e++;
            end += each + (e < larger);
        }
        want->chosen[b] = router[b] >= 0 ? (int32_t)e : -1;
    }
    reference_sort(want, 0);
}

DEVICE_TEST_OF(partitions_are_equal_and_addressed, partition_cases)
{
    const struct partition_case *p = parameters;
    struct dispatch want = take_dispatch(&d->host, p->samples, p->experts, 1),
                    got = take_dispatch(&d->memory, p->samples, p->experts, 1);
    /* The last of group 4 and the first of group 5 of the 2003 samples have equal numbers. */
    struct step_state state = {.seed = 215869, .task = 3, .step = 12345};
    struct rng rng = rng_make(state.seed, RNG_TOKENS, state.task, state.step);
    int32_t *router = arena_take(&d->host, p->samples * sizeof *router);
    double *gates = doubles(d, NULL, p->samples);
    for (size_t b = 0; b < p->samples; b++) {
        router[b] = p->with_router == NONE || (p->with_router == SOME && b % 5 == 1) ? -1 : 2;
        gates[b] = router[b] >= 0;
    }
    struct tallies tallies = take_tallies(d);
    struct partition op = {.router = to_device(d, router, p->samples * sizeof *router),
                           .base = ((uint64_t)1 << 41) - 5,
                           .state = to_device(d, &state, sizeof state),
                           .dispatch = &got,
                           .counts = tallies.device_counts,
                           .used = tallies.device_used,
                           .frozen = tallies.device_frozen};
    reference_partition(&want, router, &rng, op.base);
    must(d->ops->partition(d->backend, &op, &error));
    expect_dispatch(d, &got, &want);
    expect_close(d, "gates", got.gates, gates, p->samples, 0);
    expect_tallies(d, &tallies, &want, gates, false);

    for (size_t b = 0; b < p->samples; b++)
        want.chosen[b] = b % 3 == 0 ? 0 : (int32_t)p->experts - 1;
    op.owner = to_device(d, want.chosen, p->samples * sizeof *want.chosen);
    for (size_t b = 0; b < p->samples; b++)
        want.chosen[b] = router[b] >= 0 ? want.chosen[b] : -1;
    reference_sort(&want, 0);
    op.counts = op.used = NULL;
    must(d->ops->partition(d->backend, &op, &error));
    expect_dispatch(d, &got, &want);
}

DEVICE_TEST(pairs_are_counted)
{
    enum { SAMPLES = 70, EXPERTS = 17, TOP_K = 3 };
    int32_t first[SAMPLES * TOP_K], second[SAMPLES * TOP_K], counts[EXPERTS * EXPERTS], expected[EXPERTS * EXPERTS];
    struct rng rng = rng_make(3, RNG_TEST, 0, 0);
    for (size_t i = 0; i < SAMPLES * TOP_K; i++) { /* different experts of a sample; every ninth sample has none */
        bool none = i / TOP_K % 9 == 4;
        first[i] = none ? -1 : (int32_t)((rng_below(&rng, i / TOP_K, EXPERTS) + 5 * (i % TOP_K)) % EXPERTS);
        second[i] = none ? -1 : (int32_t)((rng_below(&rng, 1000 + i / TOP_K, EXPERTS) + 4 * (i % TOP_K)) % EXPERTS);
    }
    for (int32_t i = 0; i < EXPERTS * EXPERTS; i++)
        counts[i] = expected[i] = i; /* what was there before */
    for (size_t b = 0; b < SAMPLES; b++)
        for (size_t i = 0; i < TOP_K * TOP_K && first[b * TOP_K] >= 0; i++)
            expected[first[b * TOP_K + i / TOP_K] * EXPERTS + second[b * TOP_K + i % TOP_K]]++;
    int32_t *device = to_device(d, counts, sizeof counts);
    must_run(d, count_pairs, .samples = SAMPLES, .experts = EXPERTS, .top_k = TOP_K,
             .first = to_device(d, first, sizeof first), .second = to_device(d, second, sizeof second),
             .counts = device);
    expect_integers(d, "pair counts", device, expected, EXPERTS * EXPERTS);
}

/* Slots that a grid's second axis would not have room for: everybody goes to one expert and back. */
DEVICE_TEST(many_samples_go_and_come)
{
    enum { SAMPLES = 65537, WIDTH = 4, N = SAMPLES * WIDTH };
    int32_t *numbers = arena_take(&d->host, SAMPLES * sizeof *numbers);
    for (int32_t i = 0; i < SAMPLES; i++)
        numbers[i] = i;
    int32_t *device = to_device(d, numbers, SAMPLES * sizeof *numbers);
    struct dispatch dispatch = take_dispatch(&d->memory, SAMPLES, 1, 1);
    dispatch.slot = dispatch.sample = dispatch.choice = device;
    dispatch.offsets = to_device(d, (int32_t[]){0, SAMPLES}, 2 * sizeof(int32_t));
    struct operand x = draw(d, N, 1.0f);
    float *y = room(d, N * sizeof *y);
    double *expected = doubles(d, x.host, N);
    must_run(d, dispatch_combine, .dispatch = &dispatch, .rows_per_sample = 1, .width = WIDTH, .rows = x.device,
             .scale = 1.0f, .y = y);
    expect_close(d, "experts of many samples", y, expected, N, 1e-7);
    must_run(d, dispatch_gather, .dispatch = &dispatch, .rows_per_sample = 1, .width = WIDTH, .x = x.device, .out = y);
    expect_floats(d, "many samples by slot", y, x.host, N);
    struct step_state state = {.seed = 7};
    must_run(d, dispatch_dropout, .dispatch = &dispatch, .rows_per_sample = 1, .width = WIDTH, .probability = 0.5f,
             .state = to_device(d, &state, sizeof state), .hidden = y);
    const float *kept = from_device(d, y, N * sizeof *kept);
    for (size_t i = 0; i < N; i++)
        assert_true(kept[i] == 0 || kept[i] == 2 * x.host[i]);
    assert_true(kept[N - 1] != x.host[N - 1]);
}

DEVICE_TEST(odd_dropout_is_refused)
{
    struct dispatch_dropout op = {.rows_per_sample = 3, .width = 5, .probability = 0.1f};
    must_refuse(d->ops->dispatch_dropout(d->backend, &op, &error), ERROR_ARGUMENT, "15");
}
