/* Training on several GPUs, or on several CPU backends in their place: what one device computes, in other roundings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/train/guard.h"
#include "harness/train/replicas.h"
#include "harness/train/trainer.h"
#include "tests/harness/small_run.h"

enum { EXPERTS = 5, BLOCKS = 2, ITERATIONS = 9 };

/* What a training left behind. */
struct outcome {
    struct small_training steps;
    size_t n[TOWERS];
    float *values[TOWERS];
    int32_t use[TOWERS][2 * BLOCKS * EXPERTS];
    size_t merges;
};

static void count_merges(struct small_training *steps)
{
    struct expert_changes *changes = &steps->run->experiment->method.changes;
    ((struct outcome *)steps)->merges += changes->count;
    expert_changes_clear(changes);
}

/* The second task: 18 images in batches of 8, 8 and 2, of which a third rank has 2, 2 and none. */
static status train(struct small_run *run, struct outcome *o)
{
    o->steps.look = count_merges;
    return small_run_train(run, 1, &o->steps);
}

static void look_at(const struct model *model, struct outcome *o)
{
    for (int t = 0; t < TOWERS; t++) {
        const struct parameters *group = model->adapters != NULL   ? model->adapters->towers[t].parameters
                                         : model->prefixes != NULL ? model->prefixes->parameters
                                                                   : model->clip->parameters;
        o->n[t] = group->values_count;
        o->values[t] = small_run_keep(malloc(group->values_count * sizeof(float)));
        must(model->backend->ops->bind(model->backend, &error));
        must(model->backend->ops->download(model->backend, o->values[t], group->values, o->n[t] * sizeof(float),
                                           &error));
        if (model->adapters != NULL)
            must(adapters_read_counts_and_frozen(model->adapters, (enum tower)t, o->use[t], &error));
    }
}

static void expect_close(const struct outcome *got, const struct outcome *expected)
{
    for (size_t i = 0; i < ITERATIONS; i++)
        if (!(fabs(got->steps.loss[i] - expected->steps.loss[i]) <= 1e-4))
            fail_msg("loss of iteration %zu: expected %.7f, found %.7f", i + 1, expected->steps.loss[i],
                     got->steps.loss[i]);
    assert_memory_equal(got->use, expected->use, sizeof got->use); /* what routing and freezing decided */
    assert_int_equal(got->merges, expected->merges);
    for (int t = 0; t < TOWERS; t++) {
        double squares = 0, moved = 0;
        for (size_t i = 0; i < got->n[t]; i++) {
            double difference = (double)got->values[t][i] - (double)expected->values[t][i];
            squares += difference * difference;
            moved += (double)expected->values[t][i] * (double)expected->values[t][i];
        }
        if (!(squares <= 1e-6 * moved))
            fail_msg("tower %d: weights differ by %.3g of their size", t, sqrt(squares / moved));
    }
}

static void open_run(struct small_run *run, bool first, size_t gpus, const char *method, const char *optimizer)
{
    char word[32];
    snprintf(word, sizeof word, "run.gpus=%zu", gpus);
    /* Adam makes a whole step of a gradient that is nothing but rounding, as that of a key's bias: small steps */
    const char *const overrides[] = {method, optimizer, word, "training.iterations=9", "training.learning_rate=2e-4",
                                     NULL};
    if (first)
        small_run_open(run, 1, overrides);
    else
        small_run_reopen(run, 1, overrides);
}

static void expect_the_same(const char *method, const char *optimizer)
{
    if (small_run_gpus() < 2)
        skip();
    struct small_run run;
    struct outcome alone = {0};
    open_run(&run, true, 1, method, optimizer);
    must(train(&run, &alone));
    look_at(&run.experiment->model, &alone);
    for (size_t gpus = 2; gpus <= 3 && gpus <= small_run_gpus(); gpus++) {
        struct outcome together = {0}, again = {0};
        open_run(&run, false, gpus, method, optimizer);
        must(train(&run, &together));
        look_at(&run.experiment->model, &together);
        expect_close(&together, &alone);
        for (size_t m = 1; m < gpus; m++) { /* weights of all ranks agree to the bit */
            struct outcome other = {0};
            look_at(replicas_at(run.experiment->model.work.replicas, m)->model, &other);
            for (int t = 0; t < TOWERS; t++)
                assert_memory_equal(other.values[t], together.values[t], other.n[t] * sizeof(float));
        }
        open_run(&run, false, gpus, method, optimizer);
        must(train(&run, &again));
        look_at(&run.experiment->model, &again);
        for (int t = 0; t < TOWERS; t++)
            assert_memory_equal(again.values[t], together.values[t], again.n[t] * sizeof(float));
        assert_memory_equal(again.steps.loss, together.steps.loss, sizeof again.steps.loss);
    }
    small_run_close(&run);
}

TEST(adapters_train_together)
{
    expect_the_same("method.name=moe_adapters", "training.optimizer=adamw");
}

TEST(all_weights_train_together)
{
    expect_the_same("method.name=continual_ft", "training.optimizer=lamb");
}

TEST(prefixes_train_together)
{
    expect_the_same("method.name=diki", "training.optimizer=sgd");
}

/* Two tasks: what the leader alone did in between reaches the others. */
TEST(stopping_and_going_on)
{
    if (small_run_gpus() < 2)
        skip();
    struct small_run run;
    struct outcome whole = {0}, parts = {.steps.stop_at = 1};
    open_run(&run, true, 2, "method.name=moe_adapters", "training.optimizer=sgd");
    must(train(&run, &whole));
    look_at(&run.experiment->model, &whole);
    open_run(&run, false, 2, "method.name=moe_adapters", "training.optimizer=sgd");
    must_refuse(train(&run, &parts), ERROR_STOPPED, "second", "iteration 1 of 9");
    assert_int_equal(parts.steps.count, 1);
    must(train(&run, &parts));
    look_at(&run.experiment->model, &parts);
    for (int t = 0; t < TOWERS; t++)
        assert_memory_equal(parts.values[t], whole.values[t], whole.n[t] * sizeof(float));
    assert_memory_equal(parts.steps.loss, whole.steps.loss, sizeof whole.steps.loss);
    small_run_close(&run);
}

static struct {
    const struct backend_ops *real;
    struct backend_ops ops;
    size_t calls;
} broken;

static status fail_third(struct backend *backend, const struct patchify *arguments, struct error *failure)
{
    if (++broken.calls == 3)
        return error_set(failure, ERROR_DEVICE, "this device is broken");
    return broken.real->patchify(backend, arguments, failure);
}

/* Nobody waits for a rank that is gone; its error is the one reported. */
TEST(a_rank_that_fails_is_reported)
{
    if (small_run_gpus() < 2)
        skip();
    for (size_t rank = 0; rank < 2; rank++) {
        struct small_run run;
        struct outcome outcome = {0};
        open_run(&run, true, 2, "method.name=moe_adapters", "training.optimizer=sgd");
        struct backend *backend = replicas_at(run.experiment->model.work.replicas, rank)->model->backend;
        broken.real = backend->ops;
        broken.ops = *backend->ops;
        broken.ops.patchify = fail_third;
        broken.calls = 0;
        backend->ops = &broken.ops;
        must_refuse(train(&run, &outcome), ERROR_DEVICE, "this device is broken");
        backend->ops = broken.real;
        small_run_close(&run);
    }
}

static struct {
    const struct backend_ops *real;
    struct backend_ops ops;
    size_t losses;
} disturbed;

/* The share of one rank in the loss of its third step is infinite. */
static status disturb(struct backend *backend, const struct all_reduce *arguments, struct error *failure)
{
    const float bad = INFINITY;
    if (arguments->reduction == SUM_FLOATS && arguments->n == LOSS_TERMS && ++disturbed.losses == 3)
        must(disturbed.real->upload(backend, arguments->values, &bad, sizeof bad, failure));
    return disturbed.real->all_reduce(backend, arguments, failure);
}

/* What is not finite on one is left out by all of them. */
TEST(all_ranks_skip_together)
{
    if (small_run_gpus() < 2)
        skip();
    struct small_run run;
    struct outcome outcome = {0}, other = {0};
    size_t skipped, first;
    small_run_open(&run, 1, WORDS("run.gpus=2", "training.on_nan=skip", "training.iterations=9"));
    struct backend *backend = replicas_at(run.experiment->model.work.replicas, 1)->model->backend;
    disturbed.real = backend->ops;
    disturbed.ops = *backend->ops;
    disturbed.ops.all_reduce = disturb;
    disturbed.losses = 0;
    backend->ops = &disturbed.ops;
    must(train(&run, &outcome));
    backend->ops = disturbed.real;
    must(guard_skipped(&run.experiment->model, &skipped, &first, &error));
    look_at(&run.experiment->model, &outcome);
    look_at(replicas_at(run.experiment->model.work.replicas, 1)->model, &other);
    for (int t = 0; t < TOWERS; t++)
        assert_memory_equal(other.values[t], outcome.values[t], other.n[t] * sizeof(float));
    assert_true(skipped == 1 && first == 3);
    assert_true(isinf(outcome.steps.loss[2]) && isfinite(outcome.steps.loss[8]));
    small_run_close(&run);
}
