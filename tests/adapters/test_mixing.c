/* What happens to experts besides merging by a plan: averaging after every step, noise around what is merged, freezing. */
#include "adapters/merge/policies.h"
#include "adapters/statistics.h"
#include "tests/adapters/small_adapters.h"

#include <math.h>

enum { EXPERTS = 5, PARTS = 4 };

/* --- Averaging --- */

/* The paper's formula, expert by expert, all from the old values. */
static void average(const struct adapters *adapters, enum tower tower, size_t index, const int32_t *frozen, double beta,
                    const float *old, double *values)
{
    size_t n = 0;
    for (size_t e = 0; e < EXPERTS; e++)
        n += !frozen[e];
    for (size_t i = 0; n > 1 && i < EXPERTS; i++) {
        struct expert_slice own = expert_slice(adapters, tower, index, i);
        for (size_t k = 0; !frozen[i] && k < own.size; k++) {
            double others = 0;
            for (size_t j = 0; j < EXPERTS; j++)
                others += j != i && !frozen[j] ? (double)old[expert_slice(adapters, tower, index, j).offset + k] : 0;
            values[own.offset + k] = (1 - beta) * (double)old[own.offset + k] + beta / (double)(n - 1) * others;
        }
    }
}

/* frozen: of every block, in turns. */
static void check_average(const char *words, size_t iteration, double beta)
{
    static const int32_t frozen[4][EXPERTS] = {{0}, {0, 1, 0, 0, 1}, {1, 1, 1, 0, 1}, {0, 0, 1, 0, 0}};
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 2, "");
    struct options *options = small_options(policy_ewa.options, words);
    for (size_t i = 0; i < 4; i++)
        must(adapters_write_frozen(adapters, (enum tower)(i / 2), i % 2, frozen[i], &error));
    const float *old[TOWERS];
    double *expected[TOWERS];
    for (int t = 0; t < TOWERS; t++) {
        old[t] = small_values(&s, adapters->towers[t].parameters);
        expected[t] = doubles(&s.d, old[t], adapters->towers[t].parameters->values_count);
        for (size_t b = 0; b < 2; b++)
            for (size_t k = 0; k < PARTS; k++)
                average(adapters, (enum tower)t, expert_tensor(adapters, (enum tower)t, b, k), frozen[2 * t + (int)b],
                        beta, old[t], expected[t]);
    }
    const struct merge_call call = {
        .iteration = iteration, .iterations = 8, .before = 4, .all = 20, .epoch_length = 3, .options = options};
    must(policy_ewa.after_step(adapters, &call, &error));
    for (int t = 0; t < TOWERS; t++) {
        const struct parameters *group = adapters->towers[t].parameters;
        const float *found = small_values(&s, group);
        size_t changed = 0;
        expect_close(&s.d, "averaged experts", group->values, expected[t], group->values_count, 3e-7);
        for (size_t i = 0; i < group->values_count; i++) {
            changed += found[i] != old[t][i];
            if (expected[t][i] == (double)old[t][i])
                assert_true(found[i] == old[t][i]); /* frozen experts, routers: to the bit */
        }
        assert_true((changed > 0) == (beta > 0));
    }
    options_destroy(options);
    small_adapters_close(&s, adapters);
}

TEST(free_experts_move_towards_the_others)
{
    check_average("rate=0.4 ramp=constant until=1", 1, 0.4);
    check_average("rate=0.4 ramp=linear until=1", 2, 0.1); /* of 8 iterations */
    check_average("rate=0.4 ramp=linear until=1", 8, 0.4);
    check_average("rate=0.4 ramp=run until=1", 1, 0.1); /* the fifth of 20 */
    check_average("rate=0.4 ramp=epoch until=1", 3, 0); /* epochs of 3, 3 and 2 */
    check_average("rate=0.4 ramp=epoch until=1", 4, 0.2);
    check_average("rate=0.4 ramp=epoch until=1", 6, 0.2);
    check_average("rate=0.4 ramp=epoch until=1", 7, 0.4);
    check_average("rate=0.4 ramp=constant until=0.5", 4, 0.4);
    check_average("rate=0.4 ramp=constant until=0.5", 5, 0);
    check_average("rate=0.4 ramp=linear until=0.3", 2, 0.1);
    check_average("rate=0.4 ramp=linear until=0.3", 3, 0);
}

/* --- Noise --- */

/* Expert 2 becomes the mean of 1 and 3, with noise: all values of a tower. */
static const float *merge_with_noise(struct small *s, struct adapters *adapters, int tower, float noise, uint32_t step)
{
    const struct merge_plan plan = {.policy = &policy_most_used, .noise = noise};
    struct options *options = small_options(policy_most_used.options, "target=noise noise=0.5");
    const struct merge_call call = {.options = options, .rng = rng_make(7, RNG_POLICY, 1, step)};
    small_write_counts(adapters, (const int32_t[]){4, 9, 1, 7, 2});
    must(adapters_merge(adapters, &plan, &call, NULL, &error));
    options_destroy(options);
    return small_values(s, adapters->towers[tower].parameters);
}

/* Noise of what the merged expert's tensors deviate, in each block of its own, and nowhere else. */
ADAPTERS_TEST(noise_is_around_the_mean, 1, "")
{
    double drawn[2 * TOWERS];
    for (int t = 0; t < TOWERS; t++) {
        const float *mean = merge_with_noise(s, adapters, t, 0, 3), *found = merge_with_noise(s, adapters, t, 0.5f, 3),
                    *other = merge_with_noise(s, adapters, t, 0.5f, 4);
        size_t n = adapters->towers[t].parameters->values_count, inside = 0, changed = 0;
        for (size_t i = 0; i < 2 * PARTS; i++) {
            size_t tensor = expert_tensor(adapters, (enum tower)t, i / PARTS, i % PARTS);
            struct expert_slice target = expert_slice(adapters, (enum tower)t, tensor, 2);
            const float *at = found + target.offset, *from = mean + target.offset;
            double whole = deviation(from, NULL, target.size), ratio = deviation(at, from, target.size) / whole;
            assert_true(target.size <= 500 || (ratio > 0.45 && ratio < 0.55));
            assert_memory_not_equal(at, from, target.size * sizeof *at);
            assert_memory_not_equal(at, other + target.offset, target.size * sizeof *at);
            inside += target.size;
            if (i % PARTS == 0)
                drawn[2 * t + (int)(i / PARTS)] = ((double)*at - (double)*from) / whole;
        }
        for (size_t i = 0; i < n; i++)
            changed += found[i] != mean[i];
        assert_between(changed, inside - inside / 100, inside);
    }
    for (int i = 0; i < 2 * TOWERS; i++)
        for (int k = 0; k < i; k++)
            assert_true(fabs(drawn[i] - drawn[k]) > 5e-4);
}

/* --- Distances --- */

/* Outputs of an expert of the text tower's block 1 on the probes, [PROBES, d]. */
static double *outputs_of(struct small *s, const struct adapters *adapters, const float *values, const float *probes,
                          size_t expert)
{
    size_t d = adapters->towers[TOWER_TEXT].width;
    double *out = doubles(&s->d, NULL, PROBES * d);
    for (size_t p = 0; p < PROBES; p++)
        add_expert(adapters, values, TOWER_TEXT, 1, expert, 1, probes + p * d, out + p * d);
    return out;
}

static double relative_distance(const double *a, const double *b, size_t n)
{
    double difference = 0, first = 0, second = 0;
    for (size_t i = 0; i < n; i++) {
        difference += pow(a[i] - b[i], 2);
        first += pow(a[i], 2);
        second += pow(b[i], 2);
    }
    return sqrt(difference) / (sqrt(first) + sqrt(second));
}

ADAPTERS_TEST(distances_are_of_outputs_on_the_probes, 1, "")
{
    struct adapter_tower *tower = &adapters->towers[TOWER_TEXT];
    size_t n = PROBES * tower->width;
    const struct merge merge = {.block = 1, .target = 2, .sources = 2, .source = {4, 0}};
    double distance;
    must(adapters_collect(adapters, NEEDS_PROBES, &s->d.memory, &error));
    const float *probes = draw(&s->d, n, 1.0f).host;
    must(s->d.ops->upload(s->d.backend, tower->statistics.probes + n, probes, n * sizeof *probes, &error));
    float *values = small_values(s, tower->parameters);
    double *merged = outputs_of(s, adapters, values, probes, 2), *first = outputs_of(s, adapters, values, probes, 4),
           *second = outputs_of(s, adapters, values, probes, 0);
    double one = relative_distance(merged, first, n), two = relative_distance(merged, second, n);
    must(statistics_distance(tower, &merge, &s->d.memory, &distance, &error));
    assert_true(fabs(distance - (one + two) / 2) < 1e-5 * distance);
    for (size_t k = 2; k < PARTS; k++) { /* a source whose output is zero */
        struct expert_slice up = expert_slice(adapters, TOWER_TEXT, expert_tensor(adapters, TOWER_TEXT, 1, k), 0);
        small_clear(s, tower->parameters, up.offset, up.size);
    }
    must(statistics_distance(tower, &merge, &s->d.memory, &distance, &error));
    assert_true(fabs(distance - (one + 1) / 2) < 1e-5 * distance);
    must(statistics_distance(tower, &(struct merge){.block = 1, .target = 0, .sources = 1, .source = {0}}, &s->d.memory,
                             &distance, &error));
    assert_true(isnan(distance));
}

/* --- Freezing --- */

static size_t pick(enum tower tower, size_t block, const char *name, const char *words, size_t top_k,
                   const int32_t *counts, uint32_t task, int *picked)
{
    const struct freeze_policy *policy;
    struct freeze_view view = {.tower = tower, .block = block, .experts = EXPERTS, .counts = counts};
    struct rng rng = rng_make(3, RNG_POLICY, task, 0);
    must(freeze_policy_find(&policy, name, &error));
    struct options *options = small_options(policy->options, words);
    size_t count = policy->pick(&view, &(struct freeze_plan){policy, top_k, options}, &rng, picked);
    options_destroy(options);
    return count;
}

TEST(each_freeze_policy_picks_its_own)
{
    static const struct {
        const char *name, *words;
        size_t top_k;
        int32_t counts[EXPERTS];
        size_t count;
        int picked[EXPERTS];
    } cases[] = {{"none", "", 2, {10, 50, 0, 30, 10}, 0, {0}},
                 {"most_used", "", 2, {10, 50, 0, 30, 10}, 2, {1, 3}},
                 {"most_used", "", 5, {3, 7, 3, 7, 9}, 5, {4, 1, 3, 0, 2}}, /* of equals the lowest */
                 {"share", "freeze_share=0.29", 2, {10, 50, 0, 30, 10}, 2, {1, 3}},
                 {"share", "freeze_share=0.3", 2, {10, 50, 0, 30, 10}, 1, {1}}, /* above, not at it */
                 {"share", "freeze_share=0.09", 0, {10, 50, 0, 30, 10}, 4, {1, 3, 0, 4}},
                 {"share", "freeze_share=0", 2, {0}, 0, {0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int picked[EXPERTS];
        assert_int_equal(pick(TOWER_TEXT, 1, cases[i].name, cases[i].words, cases[i].top_k, cases[i].counts, 0, picked),
                         cases[i].count);
        for (size_t k = 0; k < cases[i].count; k++)
            assert_int_equal(picked[k], cases[i].picked[k]);
    }
}

/* Two different ones a time, all of them equally often, whatever their use; other ones in another block. */
TEST(random_freezing_does_not_look_at_use)
{
    enum { TASKS = 500 };
    static const int32_t counts[EXPERTS] = {10, 50, 0, 30, 10};
    static int picked[2 * TOWERS][TASKS][2];
    int again[EXPERTS];
    for (int i = 0; i < 2 * TOWERS; i++) {
        size_t drawn[EXPERTS] = {0};
        for (uint32_t task = 0; task < TASKS; task++) {
            const int *pair = picked[i][task];
            assert_int_equal(pick((enum tower)(i / 2), (size_t)(i % 2), "random", "", 2, counts, task, picked[i][task]),
                             2);
            pick((enum tower)(i / 2), (size_t)(i % 2), "random", "", 2, counts, task, again);
            assert_memory_equal(pair, again, 2 * sizeof *pair);
            assert_int_not_equal(pair[0], pair[1]);
            drawn[pair[0]]++;
            drawn[pair[1]]++;
        }
        for (size_t e = 0; e < EXPERTS; e++)
            assert_between(drawn[e], 150, 250); /* 1000 draws of 5 */
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(picked[i], picked[k], 20 * sizeof picked[i][0]);
    }
    assert_int_equal(pick(TOWER_TEXT, 1, "random", "", EXPERTS, counts, 1, again), EXPERTS);
}

/* More than an event holds: several events, all experts frozen. */
ADAPTERS_TEST(many_experts_are_frozen_together, 1, "experts=40")
{
    enum { MANY = 40 };
    int32_t counts[MANY], used[MANY];
    struct expert_changes changes = {0};
    struct options *options = small_options(freeze_share.options, "freeze_share=0.02");
    for (int e = 0; e < MANY; e++) {
        used[e] = e < 20;
        counts[e] = e < 20 ? 100 + e : 1;
    }
    must(adapters_write_counts(adapters, TOWER_IMAGE, 1, counts, &error));
    must(adapters_freeze(adapters, &(struct freeze_plan){&freeze_share, 2, options}, rng_make(1, RNG_POLICY, 0, 0),
                         &changes, &error));
    expect_integers(&s->d, "frozen", adapters->towers[TOWER_IMAGE].banks[1].frozen, used, MANY);
    size_t listed = 0;
    for (size_t i = 0; i < changes.count; i++) {
        assert_int_equal(changes.changes[i].merge.block, 1);
        listed += changes.changes[i].merge.sources;
    }
    assert_int_equal(changes.count, 2);
    assert_int_equal(listed, 20);
    options_destroy(options);
    expert_changes_free(&changes);
}
