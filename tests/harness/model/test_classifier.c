/* A linear head on an image tower: what it learns, how it answers, and that a stop is not seen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evaluate/evaluator.h"
#include "models/class_head.h"
#include "tests/harness/model/classifiers.h"

enum { ITERATIONS = 24 };

static struct linear_head *head_of(const struct small_run *run)
{
    return run->experiment->model.head_state;
}

/* --- Training --- */

/* The head begins at zero, so that at first all classes are equally likely; and it learns. */
static double train(struct small_run *run)
{
    struct small_training training = learn(run, 0);
    assert_int_equal(training.count, ITERATIONS);
    assert_true(fabs(training.loss[0] - log(CLASSES)) < 1e-5);
    assert_true(training.loss[ITERATIONS - 1] < 0.9 * training.loss[0]);
    return training.loss[ITERATIONS - 1];
}

RUN_TEST(pools_differ, SCRATCH, NULL)
{
    double first = train(run);
    small_run_reopen(run, 1, WORDS(SCRATCH, "head.pool=mean_patches"));
    assert_true(train(run) != first);
}

RUN_TEST(the_tower_is_trained_with_the_head_or_stays, NULL)
{
    for (int changes = 0; changes < 2; changes++) {
        small_run_reopen(run, 1, WORDS(LINEAR, changes ? "method.train=weights" : "method.train=head"));
        const struct parameters *tower = run->experiment->model.clip->parameters, *head = head_of(run)->parameters;
        size_t own = CLASSES * (WIDTH + 1), all = trained_values(&run->experiment->model);
        assert_true(changes ? all > own : all == own);
        float *before = small_run_group(tower), *start = small_run_group(head);
        train(run);
        assert_int_equal(memcmp(before, small_run_group(tower), tower->values_count * sizeof *before) != 0, changes);
        assert_memory_not_equal(start, small_run_group(head), head->values_count * sizeof *start);
    }
}

/* The tower is that of the CLIP, and what was loaded with it is gone. */
RUN_TEST(a_tower_comes_from_a_clip, NULL)
{
    const struct parameters *group = run->experiment->model.clip->parameters;
    const struct parameter first = *parameters_find(group, "visual.conv1.weight");
    float *values = small_run_group(group) + first.offset;
    assert_non_null(parameters_find(group, "text_projection"));
    small_run_reopen(run, 2, WORDS(LINEAR));
    group = run->experiment->model.clip->parameters;
    assert_null(parameters_find(group, "text_projection"));
    assert_memory_equal(small_run_group(group) + parameters_find(group, "visual.conv1.weight")->offset, values,
                        first.size * sizeof *values);
}

/* --- Answers --- */

/* A head is looked at again after training; that the highest score decides is test_saved_classifier's. */
RUN_TEST(answers_follow_the_head, SCRATCH, NULL)
{
    struct evaluator *evaluator = small_run_evaluator(run, NULL, 0);
    must(evaluator_task(evaluator, 0, 0, NULL, &error));
    const struct test_set *set = &evaluator->sets[0];
    for (size_t favourite = 0; favourite < CLASSES; favourite++) {
        struct parameters *group = head_of(run)->parameters;
        float given[CLASSES] = {0};
        given[favourite] = 1e6f;
        must(parameters_upload(group, parameters_find(group, "head.bias"), given, &error));
        must(evaluator_refresh(evaluator, &error));
        must(evaluator_task(evaluator, 0, 0, NULL, &error));
        for (size_t i = 0; i < set->n; i++)
            assert_int_equal(set->predicted[i], favourite);
    }
}

/* --- Runs --- */

#define WIDENET                                                                                                        \
    "model.blocks=4", "adapter.experts=3", "adapter.bottleneck=64", "method.ffn=widenet",                              \
        "adapter.router_noise=0.333", "tasks.third.iterations=12"

RUN_TEST(stopping_is_not_seen_in_the_weights, NULL)
{
    static const char *const cases[][8] = {{"method.train=weights"},
                                           {"method.train=head"},
                                           {"method.dropout=0.2"},
                                           {"method.ffn=ewa", MIXTURE},
                                           {"method.ffn=moe", MIXTURE},
                                           {"method.ffn=rmoe", MIXTURE},
                                           {"method.ffn=widenet", MIXTURE},
                                           {WIDENET, "adapter.share_routing=0"},
                                           {WIDENET, "adapter.share_routing=2"},
                                           {WIDENET, "adapter.share_across_blocks=2", "adapter.share_routing=2"},
                                           {WIDENET, "adapter.share_across_blocks=2", "model.share_groups=2"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += test_every()) {
        const char *const *c = cases[i];
        expect_stop_unseen(run, WORDS(SCRATCH, c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]), 17);
    }
}

/* Of a CLIP's file, the weights and what they do not say identify the run, and the vocabulary does not. */
RUN_TEST(the_file_of_a_tower_is_an_input, NULL)
{
    char *weights = small_run_format("model.weights=%s", small_run_file(run, "clip.safetensors"));
    small_run_reopen(run, 1, WORDS(LINEAR, weights));
    must(whole_run(run, "a.db", NULL));
    expect_number(run, "a.db", "SELECT count(*) FROM inputs WHERE task < 0 AND kind IN ('weights', 'configuration')",
                  2);
    expect_number(run, "a.db", "SELECT count(*) FROM inputs WHERE kind = 'vocabulary'", 0);
}

/* Every rank has the same head and experts after the same updates, and their shares of the loss add up to that of the batch. */
RUN_TEST(ranks_train_one_head, NULL)
{
    if (small_run_gpus() < 2)
        skip();
    small_run_reopen(run, 1, WORDS(SCRATCH, "run.gpus=2"));
    train(run);
    outcome_train(run, WORDS(SCRATCH), 2, 1);
    outcome_train(run, WORDS(SCRATCH, "method.ffn=ewa", MIXTURE), 2, 1);
}
