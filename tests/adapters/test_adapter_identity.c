/* Whatever changes an expert or a router changes its number, and what is left alone keeps it. */
#include "adapters/merge.h"
#include "adapters/merge/policies.h"
#include "tests/adapters/small_adapters.h"

#include <string.h>

struct seen {
    const float *values;
    uint64_t *changes;
};

static void look(struct small *s, const struct adapters *adapters, struct seen seen[TOWERS])
{
    for (int t = 0; t < TOWERS; t++) {
        const struct parameters *group = adapters->towers[t].parameters;
        seen[t].values = from_device(&s->d, group->values, group->values_count * sizeof(float));
        seen[t].changes = arena_take(&s->d.host, group->segments * sizeof *seen[t].changes);
        must(parameters_changes(group, seen[t].changes, &error));
    }
}

/* How many segments have another number than before: those whose values changed, and no others where exact is true. */
static size_t count_changes(struct small *s, const struct adapters *adapters, struct seen seen[TOWERS], bool exact)
{
    struct seen before[TOWERS];
    size_t changed = 0;
    memcpy(before, seen, sizeof before);
    look(s, adapters, seen);
    for (int t = 0; t < TOWERS; t++)
        for (size_t i = 0; i < adapters->towers[t].parameters->count; i++) {
            const struct parameter *p = &adapters->towers[t].parameters->list[i];
            size_t each = p->size / p->segments;
            for (size_t k = 0; k < p->segments; k++) {
                size_t at = p->offset + k * each, segment = p->first_segment + k;
                bool same = memcmp(seen[t].values + at, before[t].values + at, each * sizeof(float)) == 0,
                     unmarked = seen[t].changes[segment] == before[t].changes[segment];
                assert_true(same || !unmarked);
                assert_true(!exact || same == unmarked);
                changed += !unmarked;
            }
        }
    return changed;
}

ADAPTERS_TEST(what_changes_is_marked, 2, "")
{
    struct parameters *group = adapters->towers[TOWER_TEXT].parameters;
    struct seen seen[TOWERS];
    look(s, adapters, seen);
    small_loss(s, true);
    must(adapters_step(adapters, s->state, &small_rule, &error));
    assert_true(count_changes(s, adapters, seen, true) > 0);

    must(adapters_begin_task(adapters, SMALL_TASK + 1, &error)); /* a fresh optimizer counts its steps anew */
    assert_int_equal(count_changes(s, adapters, seen, true), 0);
    must(adapters_begin_task(adapters, SMALL_TASK, &error));
    small_loss(s, true);
    must(adapters_step(adapters, s->state, &small_rule, &error));
    assert_true(count_changes(s, adapters, seen, true) > 0);

    struct update_rule held = small_rule;
    struct step_guard guard = {.skip = 1};
    held.guard = to_device(&s->d, &guard, sizeof guard);
    small_loss(s, true);
    must(adapters_step(adapters, s->state, &held, &error));
    assert_int_equal(count_changes(s, adapters, seen, true), 0);

    const struct parameter *p = &group->list[adapters->towers[TOWER_TEXT].banks[0].parts[EXPERT_UP]];
    must(parameters_upload(group, p, host_room(&s->d, p->size * sizeof(float)), &error));
    assert_int_equal(count_changes(s, adapters, seen, true), p->segments);
    parameters_write(group, p->offset, 1);
    assert_int_equal(count_changes(s, adapters, seen, false), 1);
    parameters_write_all(group);
    assert_int_equal(count_changes(s, adapters, seen, false), group->segments);
}

/* By a weighted sum, and by a formula on the host. */
ADAPTERS_TEST(merges_are_marked, 2, "")
{
    const struct merge_combiner *const combiners[] = {NULL, &combine_slerp};
    struct options *options = small_options(combine_slerp.options, "");
    for (size_t i = 0; i < 2; i++) {
        struct merge_plan plan = {.moments = MOMENTS_AVERAGE, .combiner = combiners[i], .combiner_options = options};
        struct expert_changes events = {0};
        struct seen seen[TOWERS];
        size_t merged = 0;
        must(merge_policy_find(&plan.policy, "most_used", &error));
        small_write_counts(adapters, (const int32_t[]){4, 9, 1, 7, 2});
        look(s, adapters, seen);
        must(adapters_merge(adapters, &plan, &(struct merge_call){.moment = MERGE_AFTER_STEP}, &events, &error));
        for (size_t k = 0; k < events.count; k++)
            merged += events.changes[k].kind == CHANGE_MERGE;
        assert_true(merged > 0);
        assert_int_equal(count_changes(s, adapters, seen, true), 4 * merged);
        expert_changes_free(&events);
    }
    options_destroy(options);
}
