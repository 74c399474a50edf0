/* A linear head on an image tower: what it learns, how it answers, and that a stop is not seen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evaluate/evaluator.h"
#include "models/linear_head.h"
#include "tests/harness/heads/classifiers.h"

enum { ITERATIONS = 24 };

static struct linear_head *head_of(const struct small_run *run)
{
    return run->experiment->model.head_state;
}

/* --- Training --- */

/* The head begins at zero, so that at first all classes are equally likely; and it learns. */
static double train(struct small_run *run)
{
    struct small_training training = {0};
    must(small_run_train(run, 0, &training));
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
    static const char name[] = "visual.conv1.weight";
    float *values[2];
    size_t size = 0;
    for (int i = 0; i < 2; i++) {
        if (i > 0)
            small_run_reopen(run, 2, WORDS(LINEAR));
        const struct parameters *group = run->experiment->model.clip->parameters;
        const struct parameter *p = parameters_find(group, name);
        size = p->size;
        values[i] = small_run_keep(malloc(size * sizeof *values[i]));
        must(parameters_download(group, p, values[i], &error));
        assert_int_equal(parameters_find(group, "text_projection") == NULL, i > 0);
    }
    assert_memory_equal(values[0], values[1], size * sizeof *values[0]);
}

/* --- Answers --- */

static double score(const float *weights, float bias, const float *features)
{
    return (double)bias + plain_dot(weights, features, WIDTH);
}

RUN_TEST(an_image_gets_the_class_with_the_highest_score, SCRATCH, NULL)
{
    train(run);
    const struct linear *linear = &head_of(run)->linear;
    struct evaluator *evaluator = small_run_evaluator(run, NULL, 0);
    must(evaluator_task(evaluator, 0, 0, NULL, &error));
    float *weights = small_run_values(run, linear->weight.value, CLASSES * WIDTH),
          *biases = small_run_values(run, linear->bias.value, CLASSES);
    const struct test_set *set = &evaluator->sets[0];
    for (size_t i = 0; i < set->n * CLASSES; i++) {
        const float *features = set->routed.features + i / CLASSES * WIDTH;
        size_t c = i % CLASSES, best = set->predicted[i / CLASSES];
        assert_true(score(weights + c * WIDTH, biases[c], features) <=
                    score(weights + best * WIDTH, biases[best], features) + 1e-5);
    }
    for (uint16_t favourite = 0; favourite < CLASSES; favourite++) {
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
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
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
