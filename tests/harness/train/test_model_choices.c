/* Whatever a suite chooses of the model: a stop changes no bit, ranks compute what one device does, and what the evaluation
 * keeps is what it would compute. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evaluate/evaluator.h"
#include "tests/harness/small_run.h"

enum { OVERRIDES = 8 };

static const struct choice {
    const char *overrides[OVERRIDES];
    bool shares_differ; /* ranks compute something of their share alone: near one device's numbers, not the same */
} choices[] = {
    {.overrides = {"adapter.blocks=last_1"}},
    {.overrides = {"adapter.blocks=0", "adapter.towers=image"}},
    {.overrides = {"adapter.towers=text", "merge.policy=downstream"}},
    {.overrides = {"adapter.shared_expert=true", "adapter.blocks=first_1"}},
    {.overrides = {"adapter.balance_loss=cv", "adapter.balance_weight=0.3"}, .shares_differ = true},
    {.overrides = {"adapter.gate_input=mean", "adapter.shared_expert=true", "adapter.blocks=last_1"}},
    {.overrides = {"adapter.gate_input=mean", "merge.policy=downstream", "adapter.balance_loss=cv"},
     .shares_differ = true},
    {.overrides = {"adapter.routing=per_token", "adapter.shared_expert=true", "merge.policy=downstream"}},
    {.overrides = {"adapter.routing=per_token", "merge.policy=coactivated", "adapter.balance_loss=cv"},
     .shares_differ = true},
    {.overrides = {"adapter.routing=per_token", "merge.policy=similar", "adapter.blocks=last_1"},
     .shares_differ = true},
    {.overrides = {"adapter.kind=ffn", "adapter.bottleneck=64", "adapter.init_noise=0.01"}},
    {.overrides = {"adapter.router=softmax_topk", "adapter.router_noise=0.2", "adapter.routing=per_token"}},
    {.overrides = {"adapter.kind=ffn", "adapter.bottleneck=64", "adapter.router=softmax_topk",
                   "adapter.aligned_output=shared", "adapter.capacity=1", "adapter.balance_loss=rmoe"},
     .shares_differ = true},
    {.overrides = {"adapter.router=random_uniform", "adapter.routing=per_token", "adapter.top_k=1",
                   "adapter.routers=one", "selector.kind=none", "adapter.freeze=none", "merge.policy=ewa"},
     .shares_differ = true},
    {.overrides = {"adapter.share_across_blocks=1", "adapter.shared_expert=true", "merge.policy=similar"},
     .shares_differ = true},
    {.overrides = {"adapter.share_across_blocks=1", "adapter.share_routing=1", "adapter.router=softmax_topk",
                   "adapter.routing=per_token", "adapter.balance_loss=widenet"},
     .shares_differ = true},
    {.overrides = {"adapter.share_across_blocks=1", "adapter.share_routing=1", "adapter.gate_input=mean"}},
    {.overrides = {"adapter.experts=512"}},
};

/* Weights and counts of both towers. */
struct outcome {
    size_t n[TOWERS], counts_n[TOWERS];
    float *values[TOWERS];
    int32_t *use[TOWERS];
};

static void look_at(const struct small_run *run, struct outcome *o)
{
    const struct adapters *adapters = run->experiment->model.adapters;
    for (int t = 0; t < TOWERS; t++) {
        o->n[t] = adapters->towers[t].parameters->values_count;
        o->values[t] = small_run_adapters(run, (enum tower)t);
        o->counts_n[t] = 2 * adapters_counts(adapters, (enum tower)t).n;
        o->use[t] = small_run_keep(malloc((o->counts_n[t] + 1) * sizeof **o->use));
        must(adapters_read_counts_and_frozen(adapters, (enum tower)t, o->use[t], &error));
    }
}

static void expect_same(const struct outcome *found, const struct outcome *expected)
{
    for (int t = 0; t < TOWERS; t++) {
        assert_int_equal(found->n[t], expected->n[t]);
        assert_memory_equal(found->values[t], expected->values[t], found->n[t] * sizeof(float));
        assert_memory_equal(found->use[t], expected->use[t], found->counts_n[t] * sizeof(int32_t));
    }
}

static void expect_close(const struct outcome *found, const struct outcome *expected)
{
    for (int t = 0; t < TOWERS; t++) {
        double squares = 0, whole = 0;
        for (size_t i = 0; i < found->n[t]; i++) {
            double difference = (double)found->values[t][i] - (double)expected->values[t][i];
            squares += difference * difference;
            whole += (double)expected->values[t][i] * (double)expected->values[t][i];
        }
        if (!(squares <= 1e-6 * whole))
            fail_msg("tower %d: weights differ by %.3g of their size", t, sqrt(squares / whole));
        assert_memory_equal(found->use[t], expected->use[t], found->counts_n[t] * sizeof(int32_t));
    }
}

/* Ended by NULL. */
static const char *const *words_of(const struct choice *choice, const char *more)
{
    static const char *overrides[OVERRIDES + 4];
    size_t count = 2;
    overrides[0] = "training.learning_rate=2e-4";
    overrides[1] = "training.iterations=4";
    for (; count <= OVERRIDES + 1 && choice->overrides[count - 2] != NULL; count++)
        overrides[count] = choice->overrides[count - 2];
    overrides[count] = more;
    overrides[count + 1] = NULL;
    return overrides;
}

static void train_two(struct small_run *run, const char *const *overrides, struct outcome *outcome)
{
    small_run_reopen(run, 1, overrides);
    must(small_run_train(run, 0, NULL));
    must(small_run_train(run, 1, NULL));
    look_at(run, outcome);
}

RUN_TEST(stops_change_nothing, NULL)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i += test_every()) {
        struct outcome whole, parts;
        struct small_training part = {.every = SIZE_MAX, .stop_at = 3};
        const char *const *overrides = words_of(&choices[i], NULL);
        train_two(run, overrides, &whole);
        small_run_reopen(run, 1, overrides);
        must(small_run_train(run, 0, NULL));
        assert_int_equal(small_run_train(run, 1, &part), ERROR_STOPPED);
        small_run_resume(run, 1, 3, overrides);
        must(small_run_train(run, 1, &part));
        look_at(run, &parts);
        expect_same(&parts, &whole);
    }
}

RUN_TEST(ranks_train_together, NULL)
{
    if (small_run_gpus() < 2)
        skip();
    for (size_t i = 1 % test_every(); i < sizeof choices / sizeof *choices; i += test_every()) {
        struct outcome alone, together, again;
        train_two(run, words_of(&choices[i], NULL), &alone);
        train_two(run, words_of(&choices[i], "run.gpus=2"), &together);
        train_two(run, words_of(&choices[i], "run.gpus=2"), &again);
        if (!choices[i].shares_differ)
            expect_close(&together, &alone);
        expect_same(&again, &together);
    }
}

/* By an evaluator that keeps what cannot have changed, after each of two tasks. */
static void expect_as_computed(struct small_run *run, struct evaluator *evaluator, size_t checkpoint)
{
    struct run *e = run->experiment;
    must(evaluator_refresh(evaluator, &error));
    for (size_t j = 0; j <= checkpoint; j++) {
        struct evaluator *fresh;
        const struct test_set *set = &evaluator->sets[j];
        must(evaluator_task(evaluator, checkpoint, j, NULL, &error));
        e->model.settings.keep_features = false;
        must(evaluator_create(&fresh, &e->model, &e->data, &e->method, NULL, &error));
        must(evaluator_task(fresh, checkpoint, j, NULL, &error));
        e->model.settings.keep_features = true;
        assert_memory_equal(set->routed.features, fresh->sets[j].routed.features,
                            set->n * set->routed.embed * sizeof(float));
        assert_memory_equal(set->predicted, fresh->sets[j].predicted, set->n * sizeof *set->predicted);
        evaluator_destroy(fresh);
    }
}

RUN_TEST(kept_features_are_those_computed, NULL)
{
    for (size_t i = 2 % test_every(); i < sizeof choices / sizeof *choices; i += test_every()) {
        small_run_reopen(run, 1, words_of(&choices[i], "training.learning_rate=1e-2"));
        struct evaluator *evaluator = small_run_evaluator(run, NULL, 2);
        for (size_t k = 0; k < 2; k++) {
            must(small_run_train(run, k, NULL));
            expect_as_computed(run, evaluator, k);
        }
    }
}
