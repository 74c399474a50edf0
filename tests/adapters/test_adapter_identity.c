/* Whatever changes an expert or a router changes its number, and what is left alone keeps it. */
#include "adapters/identity.h"
#include "adapters/merge.h"
#include "adapters/merge/combine.h"
#include "tests/adapters/adapters.h"
#include "tests/adapters/small_adapters.h"

#include <stdlib.h>
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

    const struct parameter *p = &group->list[adapters->towers[TOWER_TEXT].banks[0].up_weight];
    float *zeros = calloc(p->size, sizeof *zeros);
    must(parameters_upload(group, p, zeros, &error));
    assert_int_equal(count_changes(s, adapters, seen, true), p->segments);
    free(zeros);
    parameters_write(group, p->offset, 1);
    assert_int_equal(count_changes(s, adapters, seen, false), 1);
    parameters_write_all(group);
    assert_int_equal(count_changes(s, adapters, seen, false), group->segments);
}

static status halve(const struct merge_sources *sources, const struct options *options, float *merged,
                    struct error *failure)
{
    (void)options;
    (void)failure;
    for (size_t i = 0; i < expert_size(sources->shape); i++)
        merged[i] = sources->expert[0][i] / 2;
    return OK;
}

TEST(merges_are_marked)
{
    static const struct merge_combiner formula = {.name = "half", .combine = halve};
    const struct merge_combiner *const combiners[] = {NULL, &formula}; /* a weighted sum, and a formula on the host */
    for (size_t i = 0; i < 2; i++) {
        struct small s;
        struct adapters *adapters = small_adapters_open(&s, 2, NULL);
        struct merge_plan plan = {.moments = MOMENTS_AVERAGE, .combiner = combiners[i]};
        struct expert_changes events = {0};
        struct seen seen[TOWERS];
        size_t merged = 0;
        must(merge_policy_find(&plan.policy, "most_used", &error));
        small_write_counts(adapters, (const int32_t[]){4, 9, 1, 7, 2});
        look(&s, adapters, seen);
        must(adapters_merge(adapters, &plan, &(struct merge_call){.moment = MERGE_AFTER_STEP}, &events, &error));
        for (size_t k = 0; k < events.count; k++)
            merged += events.changes[k].kind == CHANGE_MERGE;
        assert_true(merged > 0);
        assert_int_equal(count_changes(&s, adapters, seen, true), 4 * merged);
        expert_changes_free(&events);
        small_adapters_close(&s, adapters);
    }
}

/* A way through the tower has another identity when one of its experts or its router changes, and only then. */
ADAPTERS_TEST(a_way_is_what_it_passes_through, 1, "")
{
    const struct adapter_tower *tower = &adapters->towers[TOWER_IMAGE];
    struct adapter_identity identity;
    int32_t *chosen = calloc(tower->blocks * small_settings.top_k, sizeof *chosen);
    for (size_t i = 0; i < tower->blocks * small_settings.top_k; i++)
        chosen[i] = (int32_t)(i % small_settings.top_k);
    adapter_identity_create(&identity, adapters);
    must(adapter_identity_read(&identity, &error));
    uint64_t before = adapter_identity_of(&identity, TOWER_IMAGE, SMALL_TASK, chosen);
    const struct {
        size_t index, part;
        bool on_the_way;
    } writes[] = {{tower->banks[0].down_bias, 0, true},
                  {tower->banks[tower->blocks - 1].up_bias, small_settings.experts - 1, false},
                  {tower->banks[0].routers, SMALL_TASK, true},
                  {tower->banks[0].routers, SMALL_TASK + 1, false}};
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        struct expert_slice slice = expert_slice(adapters, TOWER_IMAGE, writes[i].index, writes[i].part);
        parameters_write(tower->parameters, slice.offset, slice.size);
        must(adapter_identity_read(&identity, &error));
        uint64_t now = adapter_identity_of(&identity, TOWER_IMAGE, SMALL_TASK, chosen);
        assert_true((now != before) == writes[i].on_the_way);
        before = now;
    }
    adapter_identity_free(&identity);
    free(chosen);
}
