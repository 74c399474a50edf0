/* Every merge policy with every way to combine: a run that was stopped, and one on two devices, are the run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/merge/policies.h"
#include "adapters/statistics.h"
#include "harness/train/method.h"
#include "harness/train/services/merging.h"
#include "tests/harness/train/outcome.h"

RUN_TEST(every_combination_survives_a_stop_and_two_devices, NULL)
{
    const struct merge_policy *policy;
    const struct merge_combiner *combiner;
    const size_t every = 2 * test_every() - 1; /* at least one of a policy */
    for (size_t p = 0; (policy = merge_policy_at(p)) != NULL; p++)
        for (size_t k = 0; (combiner = merge_combiner_at(k)) != NULL; k++) {
            const char *const words[] = {small_run_format("merge.policy=%s", policy->name),
                                         small_run_format("combine.name=%s", combiner->name),
                                         "training.learning_rate=1e-3", NULL};
            if ((p + k) % every != 0 || policy->after_step != NULL ||
                policy->ask != NULL) /* its own combination, a program */
                continue;
            expect_stop_between(run, words, 2); /* right before the merge */
            outcome_train(run, words, 2, 1);
        }
}

static void add_loss(const struct loss_mean *mean, struct run *e, float loss, bool held)
{
    const struct step_guard guard = {.skip = held};
    must(e->model.backend->ops->upload(e->model.backend, e->model.loss, &loss, sizeof loss, &error));
    must(e->model.backend->ops->upload(e->model.backend, e->model.guard, &guard, sizeof guard, &error));
    must(loss_mean_add(mean, &e->model, &error));
}

/* What the plateau schedule looks at: all losses of a window, but those of iterations that were left out; also after a stop. */
RUN_TEST(the_mean_loss_is_of_all_iterations_that_count, NULL)
{
    struct loss_mean mean;
    struct archive *archive;
    double loss;
    struct run *e = run->experiment;
    must(loss_mean_open(&mean, &e->model, &e->model.memory, &error));
    add_loss(&mean, e, 4, false);
    add_loss(&mean, e, (float)NAN, true);
    add_loss(&mean, e, 1, false);
    archive_create(&archive);
    struct serializer serializer = {.archive = archive, .backend = e->model.backend, .saving = true};
    must(loss_mean_keep(&mean, "loss", &serializer, &error));
    must(loss_mean_take(&mean, &e->model, &loss, &error));
    assert_true(loss == 2.5);
    must(loss_mean_take(&mean, &e->model, &loss, &error));
    assert_true(isnan(loss));
    serializer.saving = false;
    must(loss_mean_keep(&mean, "loss", &serializer, &error));
    add_loss(&mean, e, 7, false);
    must(loss_mean_take(&mean, &e->model, &loss, &error));
    assert_true(loss == 4);
    archive_close(archive);
}

static void expect_windows(const struct small_run *run, size_t expected, float counted)
{
    struct run *e = run->experiment;
    struct archive *archive;
    float sums[3];
    double windows[2];
    archive_create(&archive);
    struct serializer serializer = {.archive = archive, .backend = e->model.backend, .saving = true};
    must(e->model.settings.method->keep(&e->method, &serializer, &error));
    must(archive_get(archive, "schedule.loss", SAFETENSOR_F32, 3, sums, &error));
    must(archive_get(archive, "schedule.state", SAFETENSOR_F64, 2, windows, &error));
    assert_true(sums[0] > 0 && sums[1] == counted && windows[0] > 0);
    assert_int_equal((size_t)windows[1], expected);
    archive_close(archive);
}

/* The state of schedule and loss is among what is kept, and begins with every task: losses of two tasks are not compared. */
RUN_TEST(the_schedule_is_kept, "merge.schedule=plateau", "merge.every=2", NULL)
{
    for (size_t task = 0; task < 2; task++) {
        struct small_training part = {.every = SIZE_MAX, .stop_at = 3};
        assert_int_equal(small_run_train(run, task, &part), ERROR_STOPPED);
        expect_windows(run, 1, 1);
        must(small_run_train(run, task, &part));
    }
}

/* The choice is drawn anew for every merge of a block. */
RUN_TEST(random_merges_differ_from_time_to_time, "merge.policy=random", "merge.every=1", "adapter.freeze=none", NULL)
{
    learn(run, 0);
    const struct expert_change *first = run->experiment->method.changes.changes;
    size_t others = 0, same = 0;
    for (size_t i = 1; i < run->experiment->method.changes.count; i++)
        if (first[i].tower == first->tower && first[i].merge.block == first->merge.block) {
            others++;
            same += memcmp(first[i].merge.source, first->merge.source, 2 * sizeof(int)) == 0 &&
                    first[i].merge.target == first->merge.target;
        }
    assert_true(same < others);
}

static size_t count_merges(const struct run *e)
{
    size_t count = 0;
    for (size_t i = 0; i < e->method.changes.count; i++)
        count += e->method.changes.changes[i].kind != CHANGE_FREEZE;
    return count;
}

/* Tasks of 6 iterations, merges or skips of 4 blocks; the last ones come before those that freeze. */
RUN_TEST(merges_keep_to_the_schedule, NULL)
{
    static const struct {
        const char *schedule, *every;
        size_t first_two, all; /* after two iterations, and after the task */
    } cases[] = {
        {"merge.schedule=every", "merge.every=2", 4, 12},      {"merge.schedule=every", "merge.every=7", 0, 0},
        {"merge.schedule=once", "merge.every=2", 4, 4},        {"merge.schedule=once", "merge.every=3", 0, 4},
        {"merge.schedule=once", "merge.every=7", 0, 0},        {"merge.schedule=end_of_task", "merge.every=2", 0, 4},
        {"merge.schedule=end_of_task", "merge.every=7", 0, 4}, {"merge.schedule=warmup_decay", "merge.every=2", 0, 12},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct small_training part = {.stop_at = 2};
        small_run_reopen(run, 1, WORDS(cases[i].schedule, cases[i].every));
        const struct expert_changes *changes = &run->experiment->method.changes;
        must_refuse(small_run_train(run, 0, &part), ERROR_STOPPED, "first", "iteration 2 of 6");
        assert_int_equal(count_merges(run->experiment), cases[i].first_two);
        assert_int_equal(changes->count, cases[i].first_two); /* end_task did not run */
        must(small_run_train(run, 0, &part));
        assert_int_equal(count_merges(run->experiment), cases[i].all);
        for (size_t k = 0; k < 4; k++)
            assert_int_equal(changes->changes[changes->count - 1 - k].kind, CHANGE_FREEZE);
        learn(run, 1); /* anew in every task */
        assert_int_equal(count_merges(run->experiment), 2 * cases[i].all);
    }
}

/* Of a tower: experts chosen together, [blocks, E, E], or one after the other, [E, E]. */
struct collected {
    size_t experts;
    int32_t values[2 * 64 * 64];
};

static const int32_t *row_of(const struct collected *c, size_t block, size_t first)
{
    return c->values + (block * c->experts + first) * c->experts;
}

/* Every choice is counted with each that was made beside it, or in the next block. */
static void expect_counts(const struct run *e, const struct collected *c, enum tower tower, size_t block, bool next)
{
    int32_t counts[64], after[64], top_k = (int32_t)e->model.adapters->settings.top_k;
    must(adapters_read_counts(e->model.adapters, tower, block, counts, &error));
    must(adapters_read_counts(e->model.adapters, tower, next ? 1 : block, after, &error));
    for (size_t i = 0; i < c->experts; i++) {
        int32_t row = 0, column = 0;
        for (size_t j = 0; j < c->experts; j++) {
            row += row_of(c, block, i)[j];
            column += row_of(c, block, j)[i];
        }
        assert_int_equal(row, counts[i] * top_k);
        assert_int_equal(column, after[i] * top_k);
        assert_true(next || row_of(c, block, i)[i] == counts[i]);
    }
}

/* Of both towers. What is merged is what the policy plans by what was collected, as test_merge_policies has it. */
static void check_pairs(const struct run *e, bool next)
{
    const struct expert_change *change = e->method.changes.changes;
    for (int t = 0; t < TOWERS; t++) {
        const struct adapter_statistics *s = &e->model.adapters->towers[t].statistics;
        struct collected c = {.experts = e->model.adapters->settings.experts};
        int32_t counts[2 * 2 * 64] = {0};
        struct merge_list list = {0};
        must(e->model.backend->ops->download(e->model.backend, c.values, next ? s->next : s->pairs,
                                             (next ? 1 : 2) * c.experts * c.experts * sizeof *c.values, &error));
        for (size_t block = 0; block < (next ? 1 : 2); block++)
            expect_counts(e, &c, (enum tower)t, block, next);
        must(adapters_read_counts_and_frozen(e->model.adapters, (enum tower)t, counts, &error));
        const struct merge_view view = {.tower = (enum tower)t,
                                        .blocks = 2,
                                        .experts = c.experts,
                                        .counts = counts,
                                        .frozen = counts + 2 * 64,
                                        .pairs = c.values,
                                        .next = c.values};
        e->model.settings.merge.policy->plan(&view, &(struct merge_call){.iteration = 6}, &list);
        assert_true(list.count > 0);
        for (size_t i = 0; i < list.count; i++, change++) {
            assert_true((int)change->tower == t && change->kind != CHANGE_FREEZE);
            assert_int_equal(change->merge.block, list.merges[i].block);
            assert_memory_equal(change->merge.source, list.merges[i].source, 2 * sizeof(int));
        }
        free(list.merges);
    }
}

/* The pairs that are merged are those of the statistic that the policy names, as training collected it. */
RUN_TEST(pairs_are_those_of_the_statistic, NULL)
{
    static const char *const policies[] = {"merge.policy=coactivated", "merge.policy=downstream"};
    for (size_t i = 0; i < 2; i++) {
        small_run_reopen(run, 1, WORDS(policies[i], "merge.every=6", "training.learning_rate=1e-3"));
        learn(run, 0); /* merges once, after its last step */
        check_pairs(run->experiment, i == 1);
    }
}

/* The same numbers under either name, and others without merging, which merge_experts refuses. */
RUN_TEST(merge_experts_is_moe_adapters_with_merging, NULL)
{
    struct outcome merged = outcome_train(run, WORDS("method.name=merge_experts"), 1, 1),
                   named = outcome_train(run, WORDS("method.name=moe_adapters"), 1, 1),
                   plain = outcome_train(run, WORDS("merge.policy=none"), 1, 1),
                   averaged = outcome_train(run, WORDS("merge.policy=ewa"), 1, 1);
    for (size_t i = 0; i < run->experiment->method.changes.count; i++) /* of averages no row a step */
        assert_int_equal(run->experiment->method.changes.changes[i].kind, CHANGE_FREEZE);
    expect_same(&named, &merged);
    assert_memory_not_equal(plain.values[0], merged.values[0], plain.n[0] * sizeof(float));
    assert_memory_not_equal(plain.values[0], averaged.values[0], plain.n[0] * sizeof(float));
    must_refuse(small_run_try(run, 1, WORDS("method.name=merge_experts", "merge.policy=none")), ERROR_ARGUMENT,
                "merge.policy", "merge_experts", "moe_adapters");
}

#define GROUPS                                                                                                         \
    "adapter.router=random_uniform", "adapter.top_k=1", "adapter.routers=one", "selector.kind=none",                   \
        "adapter.freeze=none", "merge.policy=ewa", "adapter.routing=per_sample"

/* The last experts would never train, which no number would show. */
RUN_TEST(groups_are_refused_where_experts_stay_without_samples, NULL)
{
    must_refuse(small_run_try(run, 1, WORDS(GROUPS)), ERROR_ARGUMENT, "first", "2 class prompts", "5 experts",
                "towers=image");
    must_refuse(small_run_try(run, 1, WORDS(GROUPS, "run.gpus=2")), ERROR_ARGUMENT, "first", "4 images of a batch",
                "5 experts", "per_token");
    must(small_run_try(run, 1, WORDS(GROUPS, "adapter.experts=2"))); /* as few as there are classes */
}
