/* Merge policies, what becomes of the moments, and freezing (Park, Algorithm 1). */

#include "adapters/merge/policies.h"
#include "adapters/statistics.h"
#include "tests/adapters/small_adapters.h"

#include <string.h>

enum { EXPERTS = 5 };

/* Counts for which expert 2 becomes the mean of 1 and 3, in every block but one that has no free expert. */
static struct adapters *open_counted(struct small *s)
{
    struct adapters *adapters = small_adapters_open(s, 2, "");
    for (int t = 0; t < TOWERS; t++) {
        struct parameters *group = adapters->towers[t].parameters;
        float *const moments[] = {group->first_moment, group->second_moment};
        for (int i = 0; i < 2; i++)
            must(s->d.ops->upload(s->d.backend, moments[i], draw(&s->d, group->values_count, 1.0f).host,
                                  group->values_count * sizeof(float), &error));
        int32_t *steps = from_device(&s->d, group->steps, group->segments * sizeof *steps);
        for (size_t i = 0; i < group->segments; i++)
            steps[i] = (int32_t)(10 + i % EXPERTS * i % EXPERTS);
        must(s->d.ops->upload(s->d.backend, group->steps, steps, group->segments * sizeof *steps, &error));
    }
    small_write_counts(adapters, (const int32_t[]){4, 9, 1, 7, 2});
    must(adapters_write_frozen(adapters, TOWER_TEXT, 1, (const int32_t[]){1, 1, 1, 1, 1}, &error));
    return adapters;
}

struct stack {
    float *values, *first, *second;
    int32_t *steps;
};

static struct stack read_stack(struct small *s, const struct parameters *group)
{
    size_t bytes = group->values_count * sizeof(float);
    return (struct stack){from_device(&s->d, group->values, bytes), from_device(&s->d, group->first_moment, bytes),
                          from_device(&s->d, group->second_moment, bytes),
                          from_device(&s->d, group->steps, group->segments * sizeof(int32_t))};
}

/* values[2] = (values[1] + values[3]) / 2, tensor by tensor */
static void average(const struct adapters *adapters, enum tower tower, size_t index, float *values)
{
    struct expert_slice one = expert_slice(adapters, tower, index, 1), two = expert_slice(adapters, tower, index, 2),
                        three = expert_slice(adapters, tower, index, 3);
    for (size_t i = 0; i < two.size; i++)
        values[two.offset + i] = (float)(0.5 * (double)values[one.offset + i] + 0.5 * (double)values[three.offset + i]);
}

static void expect_moments(const struct adapters *adapters, enum tower tower, size_t index, enum merge_moments moments,
                           struct stack *stack)
{
    struct expert_slice target = expert_slice(adapters, tower, index, 2);
    int32_t *steps = stack->steps + adapters->towers[tower].parameters->list[index].first_segment;
    if (moments == MOMENTS_AVERAGE) {
        average(adapters, tower, index, stack->first);
        average(adapters, tower, index, stack->second);
        steps[2] = (steps[1] + steps[3] + 1) / 2;
    } else if (moments == MOMENTS_RESET) {
        memset(stack->first + target.offset, 0, target.size * sizeof(float));
        memset(stack->second + target.offset, 0, target.size * sizeof(float));
        steps[2] = 0;
    }
}

/* one_moment: as an optimizer without a second moment leaves the group. */
static void check_merge(enum merge_moments moments, bool one_moment)
{
    struct small s;
    struct adapters *adapters = open_counted(&s);
    struct stack expected[TOWERS];
    for (int t = 0; t < TOWERS; t++) {
        expected[t] = read_stack(&s, adapters->towers[t].parameters);
        for (size_t b = 0; b < adapters->towers[t].blocks; b++) {
            for (size_t k = 0; k < 4 && !(t == TOWER_TEXT && b == 1); k++) {
                size_t tensor = expert_tensor(adapters, (enum tower)t, b, k);
                average(adapters, (enum tower)t, tensor, expected[t].values);
                expect_moments(adapters, (enum tower)t, tensor, moments, &expected[t]);
            }
        }
    }
    for (int t = 0; one_moment && t < TOWERS; t++)
        adapters->towers[t].parameters->second_moment = NULL;
    struct expert_changes changes = {0};
    struct merge_plan plan = {.policy = &policy_most_used, .moments = moments};
    const struct merge_call call = {.moment = MERGE_AFTER_STEP};
    must(adapters_merge(adapters, &plan, &call, &changes, &error));
    for (int t = 0; t < TOWERS; t++) {
        const struct parameters *group = adapters->towers[t].parameters;
        expect_floats(&s.d, "values", group->values, expected[t].values, group->values_count);
        expect_floats(&s.d, "first moment", group->first_moment, expected[t].first, group->values_count);
        if (!one_moment)
            expect_floats(&s.d, "second moment", group->second_moment, expected[t].second, group->values_count);
        expect_integers(&s.d, "step counts", group->steps, expected[t].steps, group->segments);
    }
    assert_int_equal(changes.count, 4); /* image before text, block by block */
    for (size_t i = 0; i < 4; i++) {
        const struct expert_change *c = &changes.changes[i];
        assert_int_equal(c->tower, i < 2 ? TOWER_IMAGE : TOWER_TEXT);
        assert_int_equal(c->merge.block, i % 2);
        assert_int_equal(c->kind, i < 3 ? CHANGE_MERGE : CHANGE_SKIP);
        assert_int_equal(c->merge.skip, i < 3 ? MERGE_DONE : MERGE_NO_FREE_EXPERT);
        assert_int_equal(c->merge.target, i < 3 ? 2 : -1);
        for (size_t k = 0; k < 2; k++) /* a merge that was skipped has no weights */
            assert_true(c->merge.weight[k] == (i < 3 ? 0.5f : 0));
    }
    expert_changes_clear(&changes);
    plan.policy = &policy_none;
    must(adapters_merge(adapters, &plan, &call, &changes, &error));
    assert_int_equal(changes.count, 0);
    expert_changes_free(&changes);
    small_adapters_close(&s, adapters);
}

TEST(merged_expert_is_the_mean_and_moments_follow)
{
    for (enum merge_moments moments = MOMENTS_KEEP; moments <= MOMENTS_RESET; moments++) {
        check_merge(moments, false);
        check_merge(moments, true);
    }
}

static status freeze_most(struct adapters *adapters, size_t top_k, struct expert_changes *changes)
{
    const struct freeze_plan plan = {.policy = &freeze_most_used, .top_k = top_k};
    return adapters_freeze(adapters, &plan, (struct rng){0}, changes, &error);
}

/* The expert of the image tower's second block that a merge overwrites. */
static int target_of(struct adapters *adapters, const char *words)
{
    struct options *options = small_options(policy_most_used.options, words);
    struct expert_changes changes = {0};
    struct merge_plan plan = {.policy = &policy_most_used};
    must(adapters_merge(adapters, &plan, &(struct merge_call){.moment = MERGE_AFTER_STEP, .options = options}, &changes,
                        &error));
    plan.policy_options = options;
    assert_int_equal(merge_needs(&plan) == NEEDS_EARLIER_COUNTS, strcmp(words, "target=least_used_ever") == 0);
    assert_int_equal(changes.changes[1].kind, CHANGE_MERGE);
    int found = changes.changes[1].merge.target;
    expert_changes_free(&changes);
    options_destroy(options);
    return found;
}

ADAPTERS_TEST(frozen_sets_only_grow, 1, "")
{
    static const int32_t grown[] = {0, 1, 1, 1, 0};
    const int32_t *frozen = adapters->towers[TOWER_IMAGE].banks[1].frozen;
    struct expert_changes changes = {0};
    must(adapters_write_counts(adapters, TOWER_IMAGE, 1, (const int32_t[]){4, 9, 1, 9, 2}, &error));
    must(freeze_most(adapters, 2, &changes));
    assert_int_equal(changes.count, 4); /* one per block */
    for (size_t i = 0; i < 4; i++) {
        const struct merge *picked = &changes.changes[i].merge;
        bool counted = i == 1;
        assert_int_equal(changes.changes[i].kind, CHANGE_FREEZE);
        assert_int_equal(picked->sources, 2);
        assert_int_equal(picked->source[0], counted ? 1 : 0); /* no counts at all: the lowest indices */
        assert_int_equal(picked->source[1], counted ? 3 : 1);
    }
    must(adapters_begin_task(adapters, 2, &error));
    must(adapters_write_counts(adapters, TOWER_IMAGE, 1, (const int32_t[]){1, 9, 8, 7, 2}, &error));
    must(freeze_most(adapters, 2, NULL)); /* no events are wanted; 1 is picked again */
    expect_integers(&s->d, "frozen", frozen, grown, EXPERTS);
    expect_integers(&s->d, "frozen", adapters->towers[TOWER_TEXT].banks[0].frozen, (const int32_t[]){1, 1, 0, 0, 0},
                    EXPERTS);
    /* a frozen expert that is overwritten stays frozen */
    must(adapters_write_counts(adapters, TOWER_IMAGE, 1, (const int32_t[]){5, 0, 8, 7, 2}, &error));
    assert_int_equal(target_of(adapters, "target=least_used_any"), 1);
    expect_integers(&s->d, "frozen", frozen, grown, EXPERTS);
    must_refuse(freeze_most(adapters, EXPERTS + 1, &changes), ERROR_ARGUMENT, "6 most used of 5");
    expert_changes_free(&changes);
}

ADAPTERS_TEST(use_by_earlier_tasks_protects, 1, "")
{
    must(adapters_collect(adapters, NEEDS_EARLIER_COUNTS, &s->d.memory, &error));
    must(adapters_begin_task(adapters, 0, &error));
    must(adapters_write_counts(adapters, TOWER_IMAGE, 1, (const int32_t[]){7, 0, 2, 1, 9}, &error));
    must(adapters_begin_task(adapters, 1, &error));
    must(adapters_write_counts(adapters, TOWER_IMAGE, 1, (const int32_t[]){0, 9, 0, 4, 2}, &error));
    must(adapters_begin_task(adapters, 2, &error));
    must(adapters_write_counts(adapters, TOWER_IMAGE, 1, (const int32_t[]){0, 9, 3, 9, 1}, &error));
    assert_int_equal(target_of(adapters, "target=least_used"), 0);
    assert_int_equal(target_of(adapters, "target=least_used_ever"), 2); /* 7, 18, 5, 14, 12 in all */
    must(adapters_write_frozen(adapters, TOWER_IMAGE, 1, (const int32_t[]){0, 0, 1, 0, 0}, &error));
    assert_int_equal(target_of(adapters, "target=least_used_ever"), 0);
}
