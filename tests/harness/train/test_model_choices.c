/* Whatever a suite chooses of the model, or of its training images: a stop changes no bit, ranks compute what one device does, and what the evaluation
 * keeps is what it would compute. */
#include <string.h>

#include "tests/harness/train/outcome.h"

enum { OVERRIDES = 8 };

#define SLOW "training.learning_rate=2e-4"

enum ranks {
    SAME,
    NEAR
}; /* NEAR: they compute something of their share alone: near one device's numbers, not the same */

static const struct choice {
    enum ranks ranks;
    const char *overrides[OVERRIDES];
} choices[] = {
    {SAME, {"adapter.blocks=last_1"}},
    {SAME, {"adapter.blocks=0", "adapter.towers=image"}},
    {SAME, {"adapter.towers=text", "merge.policy=downstream"}},
    {SAME, {"adapter.shared_expert=true", "adapter.blocks=first_1"}},
    {NEAR, {"adapter.balance_loss=cv", "adapter.balance_weight=0.3"}},
    {SAME, {"adapter.gate_input=mean", "adapter.shared_expert=true", "adapter.blocks=last_1"}},
    {NEAR, {"adapter.gate_input=mean", "merge.policy=downstream", "adapter.balance_loss=cv"}},
    {SAME, {"adapter.routing=per_token", "adapter.shared_expert=true", "merge.policy=downstream"}},
    {NEAR, {"adapter.routing=per_token", "merge.policy=coactivated", "adapter.balance_loss=cv"}},
    {NEAR, {"adapter.routing=per_token", "merge.policy=similar", "adapter.blocks=last_1"}},
    {SAME, {"adapter.kind=ffn", "adapter.bottleneck=64", "adapter.init_noise=0.01"}},
    {SAME, {"adapter.router=softmax_topk", "adapter.router_noise=0.2", "adapter.routing=per_token"}},
    {NEAR,
     {"adapter.kind=ffn", "adapter.bottleneck=64", "adapter.router=softmax_topk", "adapter.aligned_output=shared",
      "adapter.capacity=1", "adapter.balance_loss=rmoe"}},
    {NEAR,
     {"adapter.router=random_uniform", "adapter.routing=per_token", "adapter.top_k=1", "adapter.routers=one",
      "selector.kind=none", "adapter.freeze=none", "merge.policy=ewa"}},
    {NEAR, {"adapter.share_across_blocks=1", "adapter.shared_expert=true", "merge.policy=similar"}},
    {NEAR,
     {"adapter.share_across_blocks=1", "adapter.share_routing=1", "adapter.router=softmax_topk",
      "adapter.routing=per_token", "adapter.balance_loss=widenet"}},
    {SAME, {"adapter.share_across_blocks=1", "adapter.share_routing=1", "adapter.gate_input=mean"}},
    {SAME, {"adapter.experts=512"}},
    {SAME, {"merge.target=random_free", "merge.every=2"}},
    {SAME, {"merge.target=least_used_ever", "merge.every=2"}},
    {SAME, {"merge.target=noise", "merge.every=2", "adapter.freeze=random"}},
    {SAME, {"merge.schedule=warmup_decay", "merge.every=2", "adapter.freeze=share"}},
    {SAME, {"merge.schedule=plateau", "merge.every=2", "merge.least_fall=0.9"}}, /* one that hardly falls so far */
    {SAME, {"merge.policy=ewa", "merge.rate=0.5"}},
    {SAME,
     {"training.randaugment=2", "training.randaugment_magnitude=15", "training.random_erasing=0.5",
      "training.mixup=0.8", "training.cutmix=1"}},
};

static const char *const *words_of(const struct choice *choice, const char *rate)
{
    static const char *overrides[OVERRIDES + 3] = {"training.iterations=4"};
    overrides[1] = rate;
    memcpy(overrides + 2, choice->overrides, sizeof choice->overrides);
    return overrides;
}

RUN_TEST(stops_change_nothing, NULL)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i += test_every())
        expect_stop_between(run, words_of(&choices[i], SLOW), 3);
}

RUN_TEST(ranks_train_together, NULL)
{
    if (small_run_gpus() < 2)
        skip();
    for (size_t i = 1 % test_every(); i < sizeof choices / sizeof *choices; i += test_every())
        expect_ranks_unseen(run, words_of(&choices[i], SLOW), 2, choices[i].ranks == NEAR ? 0 : 1e-4, 1e-3);
}

RUN_TEST(kept_features_are_those_computed, NULL)
{
    for (size_t i = 2 % test_every(); i < sizeof choices / sizeof *choices; i += test_every()) {
        small_run_reopen(run, 1, words_of(&choices[i], "training.learning_rate=1e-2"));
        struct evaluator *evaluator = small_run_evaluator(run, NULL, 2);
        for (size_t k = 0; k < 2; k++) {
            learn(run, k);
            must(evaluator_refresh(evaluator, &error));
            for (size_t j = 0; j <= k; j++) {
                must(evaluator_task(evaluator, k, j, NULL, &error));
                expect_as_computed(evaluator, k, j);
            }
        }
    }
}
