/* What the trainer asks of a device: nothing that waits, and the same steps recorded and plain. */
#include <string.h>

#include "tests/harness/train/outcome.h"

/* Operations have no context of their own, so there is one of these. */
static struct {
    const struct backend_ops *watched;
    bool plainly;
    size_t downloads, records, replays, losses, branches;
} watch;

static status watch_download(struct backend *backend, void *host, const void *device, size_t bytes,
                             struct error *failure)
{
    watch.downloads++;
    return watch.watched->download(backend, host, device, bytes, failure);
}

static status watch_cross_entropy(struct backend *backend, const struct cross_entropy *arguments, struct error *failure)
{
    watch.losses++;
    return watch.watched->cross_entropy(backend, arguments, failure);
}

static status watch_record(struct backend *backend, struct recording *recording, recorded_body body, void *context,
                           struct error *failure)
{
    watch.records++;
    if (watch.plainly)
        return body(context, failure);
    return watch.watched->record(backend, recording, body, context, failure);
}

static status watch_replay(struct backend *backend, const struct recording *recording, struct error *failure)
{
    watch.replays++;
    return watch.watched->replay(backend, recording, failure);
}

/* Plainly: one after the other, the second one first. */
static status watch_branches(struct backend *backend, const struct branches *branches, struct error *failure)
{
    watch.branches++;
    if (!watch.plainly)
        return watch.watched->branches(backend, branches, failure);
    TRY(branches->list[1].body(branches->list[1].context, failure));
    return branches->list[0].body(branches->list[0].context, failure);
}

/* Trains the second task, whose 18 images are batches of 8, 8 and 2. */
static struct outcome train(struct small_run *run, const char *const *words, bool plainly, size_t every)
{
    struct small_training steps = {.every = every};
    small_run_reopen(run, 1, words);
    struct backend *backend = run->experiment->model.backend;
    memset(&watch, 0, sizeof watch);
    watch.plainly = plainly;
    struct backend_ops *ops = change_operations(backend, &watch.watched);
    ops->download = watch_download;
    ops->cross_entropy = watch_cross_entropy;
    ops->record = watch_record;
    ops->replay = watch_replay;
    ops->branches = watch_branches;
    must(small_run_train(run, 1, &steps));
    backend->ops = watch.watched;
    struct outcome o = outcome_of(&run->experiment->model, words[0]);
    o.steps = steps;
    return o;
}

/* A batch's shares are read from the device, so a recorded step has those of its own batch. */
RUN_TEST(recorded_and_plain_are_the_same_bits, NULL)
{
    static const char *const cases[][3] = {
        {"method.name=moe_adapters", "training.mixup=0"},   {"method.name=continual_ft", "training.mixup=0"},
        {"method.name=moe_adapters", "training.mixup=1"},   {"method.name=continual_ft", "training.cutmix=1"},
        {"method.name=moe_adapters", "run.precision=bf16"}, /* where a device has it */
    };
    bool host = strcmp(test_backend_name(), "cpu") == 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases - host; i++) {
        const char *const *words = WORDS(cases[i][0], cases[i][1], "training.iterations=9");
        struct outcome plain = train(run, words, true, 0), recorded = train(run, words, false, 0);
        expect_same(&recorded, &plain);
        assert_true(recorded.steps.loss[8] != recorded.steps.loss[7]);
        if (!host) {
            assert_int_equal(watch.records, 1);
            assert_int_equal(watch.replays, 4); /* of 9 batches, 3 are the small ones, 1 is plain, 1 recorded */
        }
        assert_int_equal(watch.losses, host ? 9 : 1 + 1 + 3); /* what the host asked for */
        assert_int_equal(watch.branches, 2 * watch.losses);   /* both towers forward and backward */
    }
}

/* Waiting for the device: once before the first step, twice (a tower each) for every merge and for the freeze after the
 * task, twice where a loss is wanted, for that and for whether the steps so far are finite, and once for whether the
 * weights are; with merge.analysis three times (losses, and a tower's counts each) for every merge and for all of them when
 * the task ends, and once for each merged block. A backend that computes in the host's memory is looked at after every
 * step. */
RUN_TEST(downloads_are_few, NULL)
{
    static const struct {
        const char *merge_every, *analysis;
        size_t every, expected;
    } cases[] = {{"merge.every=100", "merge.analysis=yes", SIZE_MAX, 1 + 2 + 1},
                 {"merge.every=100", "merge.analysis=yes", 4, 1 + 2 + 1 + 2 * 2},
                 {"merge.every=3", "merge.analysis=no", 4, 1 + 2 + 1 + 2 * 2 + 3 * 2},
                 {"merge.every=3", "merge.analysis=yes", 4, 1 + 2 + 1 + 2 * 2 + 3 * 2 + 3 * (3 + 4) + 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        train(run, WORDS(cases[i].merge_every, cases[i].analysis, "training.iterations=9"), false, cases[i].every);
        size_t looks = run->experiment->model.backend->asynchronous ? 0 : 9 - 9 / cases[i].every;
        assert_int_equal(watch.downloads, cases[i].expected + looks);
    }
}
