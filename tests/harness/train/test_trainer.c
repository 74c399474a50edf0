#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/train/guard.h"
#include "models/optimizers/optimizer.h"
#include "tests/harness/train/outcome.h"

/* Of every optimizer, of pairs of images and prompts, and of all weights, of which logit_scale stays. */
RUN_TEST(the_loss_falls, NULL)
{
    static const char *const cases[][5] = {
        {"method.train=adapters", "training.optimizer=adamw", "training.learning_rate=1e-2"},
        {"method.train=adapters", "training.optimizer=sgd", "training.learning_rate=0.5"},
        {"method.train=adapters", "training.optimizer=lamb", "training.learning_rate=0.1"},
        {"method.train=adapters", "training.loss=contrastive", "training.learning_rate=1e-2"},
        {"method.train=weights", "training.weight_decay=0.1", "training.learning_rate=1e-3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float before, after_training;
        small_run_reopen(run, 1,
                         WORDS("method.name=finetune", "training.iterations=40", "training.label_smoothing=0",
                               "training.batch=16", cases[i][0], cases[i][1], cases[i][2]));
        must(clip_logit_scale(run->experiment->model.clip, &before, &error));
        struct small_training record = learn(run, 1);
        must(clip_logit_scale(run->experiment->model.clip, &after_training, &error));
        assert_true(record.count == 40 && before == after_training);
        double first = 0, last = 0;
        for (size_t k = 0; k < 5; k++) {
            first += record.loss[k] / 5;
            last += record.loss[35 + k] / 5;
        }
        if (!(last < 0.7 * first))
            fail_msg("%s: the loss was %g and is %g", cases[i][1], first, last);
    }
}

/* Of one image and its prompt there is nothing to tell apart, however many classes the task has. */
RUN_TEST(the_contrastive_loss_is_over_pairs, "method.name=finetune", "method.train=adapters", "training.batch=1",
         "training.label_smoothing=0", "training.loss=contrastive", NULL)
{
    struct small_training record = learn(run, 1);
    for (size_t k = 0; k < record.count; k++)
        assert_true(record.loss[k] == 0);
}

/* Only the task's own router and noise matrix learn. */
RUN_TEST(other_routers_stay_zero, NULL)
{
    learn(run, 1);
    float *values = small_run_adapters(run, TOWER_IMAGE);
    const struct adapter_tower *tower = &run->experiment->model.adapters->towers[TOWER_IMAGE];
    const struct parameter *routers = &tower->parameters->list[tower->banks[0].routers];
    size_t each = routers->size / SMALL_RUN_TASKS, touched[SMALL_RUN_TASKS] = {0};
    for (size_t i = 0; i < routers->size; i++)
        touched[i / each] += values[routers->offset + i] != 0;
    assert_int_equal(touched[0], 0);
    assert_true(touched[1] > 0);
    assert_int_equal(touched[2], 0);
}

RUN_TEST(learning_rate_and_epochs, "training.reference_iterations=yes", NULL)
{
    struct small_training record = {.every = 4};
    /* the second task has 18 images: batches of 8, 8 and 2 */
    must(small_run_train(run, 1, &record));
    assert_int_equal(record.count, 7); /* 6 and the reference's one more */
    assert_int_equal(record.images, 18 + 18 + 8);
    struct schedule schedule = {5e-3, 2, 6};
    for (size_t i = 0; i < 7; i++) {
        assert_true(record.rate[i] == schedule_rate(&schedule, i));
        assert_true(isnan(record.loss[i]) == ((i + 1) % 4 != 0)); /* read only when asked for */
    }
    assert_true(record.rate[6] == 0 && record.rate[5] > 0);
}

/* Without adapters' file or clock: two runs of a seed agree bit for bit, another seed does not. */
RUN_TEST(same_seed_same_bits, NULL)
{
    struct outcome two = outcome_train(run, WORDS("run.threads=2"), 1, 1),
                   one = outcome_train(run, WORDS("run.threads=1"), 1, 1);
    expect_same(&one, &two);
    small_run_reopen(run, 2, NULL);
    learn(run, 0);
    assert_memory_not_equal(small_run_adapters(run, TOWER_IMAGE), one.values[0], one.n[0] * sizeof(float));
}

/* Makes the loss, or a gradient, of one step a NaN before the step is looked at. */
static struct {
    const struct backend_ops *real;
    size_t at, looks; /* the call of find_not_finite to disturb, counted from 1 */
} disturbed;

static status disturb(struct backend *backend, const struct find_not_finite *arguments, struct error *failure)
{
    static const float bad = NAN;
    if (++disturbed.looks == disturbed.at)
        must(disturbed.real->upload(backend, (float *)arguments->values + arguments->n / 2, &bad, sizeof bad, failure));
    return disturbed.real->find_not_finite(backend, arguments, failure);
}

enum { LOOKS = 1 + TOWERS, DISTURBED = 4, STEPS = 6 }; /* at a step: its loss, and the gradients of each tower */

/* All that a step may change, after each: n values, as many moments, counts of a block, and steps. */
static struct {
    size_t count, n, bytes;
    float *after[STEPS];
} seen;

static void keep_state(struct small_training *training)
{
    const struct adapter_tower *tower = &training->run->experiment->model.adapters->towers[TOWER_IMAGE];
    const struct parameters *group = tower->parameters;
    const void *parts[] = {group->values, group->first_moment, tower->banks[1].counts, group->steps};
    const size_t counts[] = {group->values_count, group->values_count, 2, 4};
    float *next = small_run_keep(malloc(seen.bytes = (2 * group->values_count + 2 + 4) * sizeof *next));
    seen.n = group->values_count;
    seen.after[seen.count++] = next;
    for (size_t i = 0; i < 4; next += counts[i++])
        must(group->backend->ops->download(group->backend, next, parts[i], counts[i] * sizeof *next, &error));
}

static status train_disturbed(struct small_run *run, const char *optimizer, const char *on_nan, size_t look)
{
    small_run_reopen(run, 1, WORDS("merge.every=100", "training.iterations=6", optimizer, on_nan));
    disturbed.at = LOOKS * (DISTURBED - 1) + 1 + look;
    disturbed.looks = 0;
    change_operations(run->experiment->model.backend, &disturbed.real)->find_not_finite = disturb;
    seen.count = 0;
    return small_run_train(run, 1, &(struct small_training){.every = SIZE_MAX, .look = keep_state});
}

/* Weights, moments, step counts and selection counts are as before; the steps after it are like any other. */
RUN_TEST(a_step_that_is_skipped_changes_nothing, NULL)
{
    static const char *const optimizers[LOOKS] = {"training.optimizer=adamw", "training.optimizer=sgd",
                                                  "training.optimizer=lamb"};
    for (size_t look = 0; look < LOOKS; look++) {
        size_t skipped, first;
        must(train_disturbed(run, optimizers[look], "training.on_nan=skip", look));
        assert_int_equal(seen.count, STEPS);
        for (size_t i = 1; i < STEPS; i++)
            assert_int_equal(memcmp(seen.after[i - 1], seen.after[i], seen.bytes) == 0, i + 1 == DISTURBED);
        must(guard_skipped(&run->experiment->model, &skipped, &first, &error));
        assert_true(skipped == 1 && first == DISTURBED);
    }
}

/* And it says so before anything else is done with it: at once, where that costs nothing. */
RUN_TEST(a_step_that_is_not_finite_stops_the_training, NULL)
{
    static const char *const names[LOOKS] = {"(the loss)", "gradient of visual.transformer.resblocks.",
                                             "gradient of transformer.resblocks."};
    for (size_t look = 0; look < LOOKS; look++) {
        must_refuse(train_disturbed(run, "training.optimizer=adamw", NULL, look), ERROR_FORMAT, "second", "iteration 4",
                    names[look], "learning_rate", "on_nan");
        for (size_t i = DISTURBED - 1; i < seen.count; i++)
            assert_true(memcmp(seen.after[i], seen.after[DISTURBED - 2], seen.n * sizeof(float)) == 0);
        assert_memory_equal(small_run_adapters(run, TOWER_IMAGE), seen.after[DISTURBED - 2], seen.n * sizeof(float));
    }
}

/* Refused is training whose moments are not finite when it ends. */
static void expect_moment_checked(const struct small_run *run, const float *moments, const char *named)
{
    const float bad = INFINITY;
    struct run *e = run->experiment;
    const struct parameters *group = e->model.adapters->towers[TOWER_TEXT].parameters;
    must(guard_check(&e->model, &e->data.tasks[2], 6, &error));
    must(e->model.backend->ops->upload(e->model.backend, (float *)moments + group->list[2].offset, &bad, sizeof bad,
                                       &error));
    must_refuse(guard_check(&e->model, &e->data.tasks[2], 6, &error), ERROR_FORMAT, "third", "after iteration 6",
                small_run_format("%s moment of transformer.resblocks.0.adaptmlp_list.0.up", named));
}

/* A run whose optimizers have one moment takes no memory for a second one. */
RUN_TEST(moments_that_overflow_are_told, "tasks.third.optimizer=sgd", "training.iterations=5", NULL)
{
    const struct model *model = &run->experiment->model;
    size_t both = model->memory.used, one;
    learn(run, 2); /* the other tasks need both */
    expect_moment_checked(run, model->adapters->towers[TOWER_TEXT].parameters->second_moment, "second");
    small_run_reopen(run, 1, WORDS("training.optimizer=sgd"));
    model = &run->experiment->model;
    one = model->memory.used;
    for (int t = 0; t < TOWERS; t++)
        one += model->adapters->towers[t].parameters->values_count * sizeof(float);
    assert_null(model->adapters->towers[TOWER_TEXT].parameters->second_moment);
    assert_true(one <= both && both - one < 4096); /* but for what aligns tensors */
    expect_moment_checked(run, model->adapters->towers[TOWER_TEXT].parameters->first_moment, "first");
}

/* What the keys say is what is computed: with a momentum of 0 sgd's moment is the last gradient. */
RUN_TEST(the_momentum_is_the_suites, NULL)
{
    struct outcome none = outcome_train(run, WORDS("training.optimizer=sgd", "training.momentum=0"), 1, 1),
                   task = outcome_train(run, WORDS("training.optimizer=sgd", "tasks.first.momentum=0"), 1, 1),
                   some = outcome_train(run, WORDS("training.optimizer=sgd", "training.momentum=0.9"), 1, 1);
    expect_same(&task, &none);
    assert_memory_not_equal(none.values[0], some.values[0], none.n[0] * sizeof(float));
}
