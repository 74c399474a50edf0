/* Training on several GPUs, or on several CPU backends in their place: what one device computes, in other roundings. */
#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

#include "harness/train/guard.h"
#include "harness/train/replicas.h"
#include "tests/harness/train/outcome.h"

/* Adam makes a whole step of a gradient that is nothing but rounding, as that of a key's bias: small steps. */
#define SLOW "training.learning_rate=2e-4"

/* The third rank has 2, 2 and no images of the second task's batches of 8, 8 and 2. Methods hand over what the leader alone did
 * before a task. */
RUN_TEST(all_that_is_trained_is_trained_together, NULL)
{
    static const char *const cases[][3] = {{"method.name=moe_adapters", "training.optimizer=adamw"},
                                           {"method.name=l2", "method.l2=20"},
                                           {"method.name=ewc", "method.lambda=5000"},
                                           {"method.name=continual_ft", "training.optimizer=lamb"},
                                           {"method.name=icarl", "method.exemplars=7", "method.reference_batch=5"},
                                           {"method.name=replay", "method.exemplars=7", "method.replayed=5"},
                                           {"method.name=diki", "training.optimizer=sgd"},
                                           {"method.name=dpw", "training.optimizer=sgd", "method.prefix_rank=4"}};
    const size_t most = small_run_gpus() < 3 ? 2 : 3;
    if (small_run_gpus() < 2)
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += test_every())
        expect_ranks_unseen(run, WORDS(SLOW, cases[i][0], cases[i][1], cases[i][2]), i % 3 == 0 ? most : 2, 1e-4, 1e-3);
}

/* What the leader alone did in between reaches the others. */
RUN_TEST(stopping_and_going_on, NULL)
{
    if (small_run_gpus() < 2)
        skip();
    expect_stop_between(run, WORDS(SLOW, "run.gpus=2", "training.optimizer=sgd"), 1);
}

static const struct backend_ops *real;
static size_t calls;

static status fail_third(struct backend *backend, const struct patchify *arguments, struct error *failure)
{
    if (++calls == 3)
        return error_set(failure, ERROR_DEVICE, "this device is broken");
    return real->patchify(backend, arguments, failure);
}

/* Nobody waits for a rank that is gone; its error is the one reported. */
RUN_TEST(a_rank_that_fails_is_reported, NULL)
{
    if (small_run_gpus() < 2)
        skip();
    for (size_t rank = 0; rank < 2; rank++) {
        small_run_reopen(run, 1, WORDS(SLOW, "run.gpus=2", "training.optimizer=sgd"));
        struct backend *backend = replicas_at(run->experiment->model.work.replicas, rank)->model->backend;
        calls = 0;
        change_operations(backend, &real)->patchify = fail_third;
        must_refuse(small_run_train(run, 1, NULL), ERROR_DEVICE, "this device is broken");
    }
}

static atomic_bool summing, early;

/* The second rank takes its time, as one that maps memory does, until the first one is in a sum that must not have begun. */
static status take_time(struct backend *backend, const struct patchify *arguments, struct error *failure)
{
    for (int i = 0; i < 300 && !summing; i++)
        usleep(1000);
    early = early || summing;
    return real->patchify(backend, arguments, failure);
}

static status begin_sum(struct backend *backend, const struct all_reduce *arguments, struct error *failure)
{
    summing = true;
    return real->all_reduce(backend, arguments, failure);
}

RUN_TEST(no_rank_sums_while_another_one_computes, NULL)
{
    if (small_run_gpus() < 2)
        skip();
    small_run_reopen(run, 1, WORDS(SLOW, "run.gpus=2", "training.iterations=1"));
    const struct replicas *replicas = run->experiment->model.work.replicas;
    struct backend *first = replicas_at(replicas, 0)->model->backend,
                   *second = replicas_at(replicas, 1)->model->backend;
    change_operations(first, &real)->all_reduce = begin_sum;
    change_operations(second, &real)->patchify = take_time;
    summing = early = false;
    must(small_run_train(run, 1, NULL));
    assert_true(summing && !early);
}

/* The share of one rank in the loss of its third step is infinite. */
static status disturb(struct backend *backend, const struct all_reduce *arguments, struct error *failure)
{
    const float bad = INFINITY;
    if (arguments->reduction == SUM_FLOATS && arguments->n == LOSS_TERMS && ++calls == 3)
        must(real->upload(backend, arguments->values, &bad, sizeof bad, failure));
    return real->all_reduce(backend, arguments, failure);
}

/* What is not finite on one is left out by all of them. */
RUN_TEST(all_ranks_skip_together, NULL)
{
    if (small_run_gpus() < 2)
        skip();
    struct small_training steps = {0};
    size_t skipped, first;
    small_run_reopen(run, 1, WORDS("run.gpus=2", "training.on_nan=skip", "training.iterations=9"));
    struct backend *backend = replicas_at(run->experiment->model.work.replicas, 1)->model->backend;
    calls = 0;
    change_operations(backend, &real)->all_reduce = disturb;
    must(small_run_train(run, 1, &steps));
    must(guard_skipped(&run->experiment->model, &skipped, &first, &error));
    expect_same_ranks(run, 2);
    assert_true(skipped == 1 && first == 3);
    assert_true(isinf(steps.loss[2]) && isfinite(steps.loss[8]));
}
