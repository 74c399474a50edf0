/* Merge policies, what becomes of the moments, and freezing (Park, Algorithm 1). */
#include "adapters/freeze.h"
#include "adapters/merge.h"

#include "adapters/merge/combine.h"
#include "adapters/statistics.h"
#include "tests/adapters/adapters.h"
#include "tests/adapters/small_adapters.h"

#include <stdlib.h>
#include <string.h>

enum { EXPERTS = 5 };

static const struct merge_policy *policy_called(const char *name)
{
    const struct merge_policy *policy = NULL;
    must(merge_policy_find(&policy, name, &error));
    return policy;
}

/* The plan of a one-block tower. */
static struct merge plan_one(const char *name, const int32_t *counts, const int32_t *frozen, size_t experts,
                             size_t *planned)
{
    struct merge_view view = {.tower = TOWER_TEXT, .blocks = 1, .experts = experts, .counts = counts, .frozen = frozen};
    struct merge_list list = {0};
    struct merge merge = {.target = -9};
    policy_called(name)->plan(&view, &(struct merge_call){.moment = MERGE_AFTER_STEP}, &list);
    *planned = list.count;
    if (list.count > 0)
        merge = list.merges[0];
    free(list.merges);
    return merge;
}

TEST(most_used_takes_the_extremes)
{
    static const struct {
        int32_t counts[EXPERTS], frozen[EXPERTS];
        int first, second, target;
        enum merge_skip skip;
    } cases[] = {
        {{4, 9, 1, 7, 2}, {0}, 1, 3, 2, MERGE_DONE},
        {{4, 9, 1, 7, 2}, {0, 0, 1, 0, 0}, 1, 3, 4, MERGE_DONE}, /* the least used one is frozen */
        {{4, 9, 1, 7, 2}, {0, 1, 0, 1, 0}, 1, 3, 2, MERGE_DONE}, /* frozen ones may be sources */
        {{3, 3, 3, 3, 3}, {0}, 0, 1, 0, MERGE_TARGET_IS_SOURCE}, /* ties: the lowest index, everywhere */
        {{3, 3, 3, 3, 3}, {1, 0, 0, 0, 0}, 0, 1, 1, MERGE_TARGET_IS_SOURCE},
        {{3, 3, 3, 3, 3}, {1, 1, 0, 0, 0}, 0, 1, 2, MERGE_DONE},
        {{0, 5, 0, 5, 0}, {0}, 1, 3, 0, MERGE_DONE},
        {{4, 9, 1, 7, 2}, {1, 1, 1, 1, 1}, 1, 3, -1, MERGE_NO_FREE_EXPERT},
        {{4, 9, 1, 7, 2}, {1, 0, 1, 1, 1}, 1, 3, 1, MERGE_TARGET_IS_SOURCE}, /* the only free one is the best */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t planned;
        struct merge merge = plan_one("most_used", cases[i].counts, cases[i].frozen, EXPERTS, &planned);
        assert_int_equal(planned, 1);
        assert_int_equal(merge.sources, 2);
        assert_int_equal(merge.source[0], cases[i].first);
        assert_int_equal(merge.source[1], cases[i].second);
        assert_int_equal(merge.target, cases[i].target);
        assert_int_equal(merge.skip, cases[i].skip);
    }
}

TEST(nothing_to_merge)
{
    size_t planned;
    assert_true(policy_called("none")->plan == NULL && policy_called("none")->after_step == NULL);
    plan_one("most_used", (const int32_t[]){5}, (const int32_t[1]){0}, 1, &planned);
    assert_int_equal(planned, 0);
}

static void expect_line(const char *name, const char *what, const char *text)
{
    if (text == NULL || *text == 0 || strchr(text, '\n') != NULL)
        fail_msg("%s: expected a %s in one line", name, what);
}

TEST(policies_are_found_by_name)
{
    const struct merge_policy *policy;
    assert_int_equal(merge_policy_find(&policy, "most_usd", &error), ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "did you mean \"most_used\""));
    size_t count = 0;
    for (; (policy = merge_policy_at(count)) != NULL; count++) {
        assert_ptr_equal(policy_called(policy->name), policy);
        expect_line(policy->name, "source", policy->source);
        expect_line(policy->name, "formula", policy->formula);
    }
    const struct merge_combiner *combiner;
    for (size_t i = 0; (combiner = merge_combiner_at(i)) != NULL; i++) {
        expect_line(combiner->name, "source", combiner->source);
        expect_line(combiner->name, "formula", combiner->formula);
    }
    assert_true(count >= 2);
    assert_string_equal(merge_skip_name(MERGE_DONE), "");
    assert_string_equal(merge_skip_name(MERGE_TARGET_IS_SOURCE), "target_is_source");
    assert_string_equal(merge_skip_name(MERGE_NO_FREE_EXPERT), "no_free_expert");
}

/* Counts for which expert 2 becomes the mean of 1 and 3, in every block but one that has no free expert. */
static struct adapters *open_counted(struct small *s)
{
    struct adapters *adapters = small_adapters_open(s, 2, NULL);
    for (int t = 0; t < TOWERS; t++) {
        struct parameters *group = adapters->towers[t].parameters;
        size_t bytes = group->values_count * sizeof(float);
        must(s->d.ops->upload(s->d.backend, group->first_moment, draw(&s->d, group->values_count, 1.0f).host, bytes,
                              &error));
        must(s->d.ops->upload(s->d.backend, group->second_moment, draw(&s->d, group->values_count, 1.0f).host, bytes,
                              &error));
        int32_t *steps = from_device(&s->d, group->steps, group->segments * sizeof *steps);
        for (size_t i = 0; i < group->segments; i++)
            steps[i] = (int32_t)(10 + i % EXPERTS * i % EXPERTS);
        must(s->d.ops->upload(s->d.backend, group->steps, steps, group->segments * sizeof *steps, &error));
        for (size_t b = 0; b < adapters->towers[t].blocks; b++)
            must(adapters_write_counts(adapters, (enum tower)t, b, (const int32_t[]){4, 9, 1, 7, 2}, &error));
    }
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
            size_t tensors[4];
            expert_tensors(adapters, (enum tower)t, b, tensors);
            for (size_t k = 0; k < 4 && !(t == TOWER_TEXT && b == 1); k++) {
                average(adapters, (enum tower)t, tensors[k], expected[t].values);
                expect_moments(adapters, (enum tower)t, tensors[k], moments, &expected[t]);
            }
        }
    }
    for (int t = 0; one_moment && t < TOWERS; t++)
        adapters->towers[t].parameters->second_moment = NULL;
    struct expert_changes changes = {0};
    struct merge_plan plan = {.policy = policy_called("most_used"), .moments = moments};
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
    plan.policy = policy_called("none");
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

/* A frozen expert that is overwritten (target least_used_any) stays frozen. */
static void expect_frozen_after_any_merge(struct adapters *adapters)
{
    int32_t frozen[EXPERTS];
    struct options *options;
    struct expert_changes changes = {0};
    const struct merge_plan plan = {.policy = policy_called("most_used")};
    must(options_create(&options, plan.policy->options, &error));
    must(options_set(options, "target", "least_used_any", "test", &error));
    must(adapters_write_counts(adapters, TOWER_IMAGE, 1, (const int32_t[]){5, 0, 8, 7, 2}, &error));
    must(adapters_merge(adapters, &plan, &(struct merge_call){.moment = MERGE_AFTER_STEP, .options = options}, &changes,
                        &error));
    assert_int_equal(changes.changes[1].kind, CHANGE_MERGE);
    assert_int_equal(changes.changes[1].merge.target, 1);
    must(adapters_read_frozen(adapters, TOWER_IMAGE, 1, frozen, &error));
    assert_memory_equal(frozen, ((const int32_t[]){0, 1, 1, 1, 0}), sizeof frozen);
    expert_changes_free(&changes);
    options_destroy(options);
}

TEST(frozen_sets_only_grow)
{
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 1, NULL);
    struct expert_changes changes = {0};
    int32_t frozen[EXPERTS];
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
    must(adapters_read_frozen(adapters, TOWER_IMAGE, 1, frozen, &error));
    assert_memory_equal(frozen, ((const int32_t[]){0, 1, 1, 1, 0}), sizeof frozen);
    must(adapters_read_frozen(adapters, TOWER_TEXT, 0, frozen, &error));
    assert_memory_equal(frozen, ((const int32_t[]){1, 1, 0, 0, 0}), sizeof frozen);
    expect_frozen_after_any_merge(adapters);
    assert_int_equal(freeze_most(adapters, EXPERTS + 1, &changes), ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "6 most used of 5"));
    expert_changes_free(&changes);
    small_adapters_close(&s, adapters);
}

/* The same counts in the present task, after tasks that used others. */
static int target_of(struct adapters *adapters, const char *target)
{
    struct options *options;
    struct expert_changes changes = {0};
    struct merge_plan plan = {.policy = policy_called("most_used")};
    must(options_create(&options, plan.policy->options, &error));
    must(options_set(options, "target", target, "test", &error));
    must(adapters_merge(adapters, &plan, &(struct merge_call){.moment = MERGE_AFTER_STEP, .options = options}, &changes,
                        &error));
    plan.policy_options = options;
    assert_int_equal(merge_needs(&plan) == NEEDS_EARLIER_COUNTS, strcmp(target, "least_used_ever") == 0);
    assert_int_equal(changes.changes[1].kind, CHANGE_MERGE);
    int found = changes.changes[1].merge.target;
    expert_changes_free(&changes);
    options_destroy(options);
    return found;
}

TEST(use_by_earlier_tasks_protects)
{
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 1, NULL);
    must(adapters_collect(adapters, NEEDS_EARLIER_COUNTS, &s.d.memory, &error));
    must(adapters_begin_task(adapters, 0, &error));
    must(adapters_write_counts(adapters, TOWER_IMAGE, 1, (const int32_t[]){7, 0, 2, 1, 9}, &error));
    must(adapters_begin_task(adapters, 1, &error));
    must(adapters_write_counts(adapters, TOWER_IMAGE, 1, (const int32_t[]){0, 9, 0, 4, 2}, &error));
    must(adapters_begin_task(adapters, 2, &error));
    must(adapters_write_counts(adapters, TOWER_IMAGE, 1, (const int32_t[]){0, 9, 3, 9, 1}, &error));
    assert_int_equal(target_of(adapters, "least_used"), 0);
    assert_int_equal(target_of(adapters, "least_used_ever"), 2); /* 7, 18, 5, 14, 12 in all */
    must(adapters_write_frozen(adapters, TOWER_IMAGE, 1, (const int32_t[]){0, 0, 1, 0, 0}, &error));
    assert_int_equal(target_of(adapters, "least_used_ever"), 0);
    small_adapters_close(&s, adapters);
}

TEST(highest_counts_break_ties_low)
{
    int highest[EXPERTS];
    highest_counts((const int32_t[]){3, 7, 3, 7, 9}, EXPERTS, EXPERTS, highest);
    assert_memory_equal(highest, ((const int[]){4, 1, 3, 0, 2}), sizeof highest);
}
