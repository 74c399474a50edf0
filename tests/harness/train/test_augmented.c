/* Training on augmented images: what mixup and CutMix make of the loss, and that neither stops nor ranks are seen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/loader.h"
#include "tests/harness/train/outcome.h"

enum { ITERATIONS = 7 };

/* Of the second task: 18 images in batches of 8, 8 and 2. */
static status train(struct small_run *run, struct small_training *training)
{
    return small_run_train(run, 1, training);
}

/* Operations have no context of their own, so there is one of these. */
static struct {
    const struct backend_ops *watched;
    size_t calls;
    int32_t labels[64], others[64];
    float shares[64], first, second, mixed;
} watch;

static status watch_cross_entropy(struct backend *backend, const struct cross_entropy *arguments, struct error *failure)
{
    struct cross_entropy part = *arguments;
    size_t n = arguments->logits.rows;
    if (watch.calls++ == 0) { /* device memory is the host's */
        memcpy(watch.labels, arguments->labels, n * sizeof *watch.labels);
        memcpy(watch.others, arguments->others, n * sizeof *watch.others);
        memcpy(watch.shares, arguments->shares, n * sizeof *watch.shares);
        part.dlogits.data = NULL;
        part.loss = &watch.mixed;
        TRY(watch.watched->cross_entropy(backend, &part, failure));
        part.others = NULL;
        part.loss = &watch.first;
        TRY(watch.watched->cross_entropy(backend, &part, failure));
        part.labels = arguments->others;
        part.loss = &watch.second;
        TRY(watch.watched->cross_entropy(backend, &part, failure));
    }
    return watch.watched->cross_entropy(backend, arguments, failure);
}

static void train_watched(struct small_run *run, struct small_training *record)
{
    struct backend *backend = run->experiment->model.backend;
    memset(&watch, 0, sizeof watch);
    change_operations(backend, &watch.watched)->cross_entropy = watch_cross_entropy;
    must(train(run, record));
    backend->ops = watch.watched;
}

static void expect_labels_of_the_loader(const struct small_run *run)
{
    const struct run *e = run->experiment;
    const struct task *task = &e->data.tasks[1];
    struct loader_settings settings = {.dataset = task->dataset,
                                       .split = SPLIT_TRAIN,
                                       .resolution = (int)e->model.clip->dimensions.resolution,
                                       .batch = task->settings.batch,
                                       .shuffle = true,
                                       .augment = true,
                                       .augmentation = task->settings.augmentation,
                                       .seed = e->model.seed,
                                       .task = (uint32_t)task->index};
    struct loader *loader;
    size_t count, side = (size_t)settings.resolution;
    int32_t labels[64], others[64];
    float own;
    uint8_t *pixels = small_run_keep(malloc(settings.batch * side * side * 3));
    must(loader_create(&loader, &settings, &error));
    must(loader_read_mixed(loader, 0, pixels, labels, others, &own, &count, &error));
    assert_int_equal(count, 8);
    assert_memory_equal(watch.labels, labels, count * sizeof *labels);
    assert_memory_equal(watch.others, others, count * sizeof *others);
    for (size_t i = 0; i < count; i++)
        assert_memory_equal(&watch.shares[i], &own, sizeof own);
    loader_destroy(loader);
}

/* The loss is own · CE(labels) + (1 − own) · CE(others). */
RUN_TEST(the_loss_of_mixed_images, NULL)
{
    static const char *const kinds[] = {"training.mixup=1", "training.cutmix=1"};
    if (strcmp(test_backend_name(), "cpu") != 0)
        skip();
    for (size_t k = 0; k < 2; k++) {
        struct small_training record = {0};
        small_run_reopen(run, 1, WORDS("method.name=continual_ft", kinds[k], "training.iterations=7"));
        train_watched(run, &record);
        expect_labels_of_the_loader(run);
        double own = (double)watch.shares[0], first = (double)watch.first, second = (double)watch.second;
        assert_true(own > 0.01 && own < 0.99 && fabs(first - second) > 1e-3);
        assert_true(fabs((double)watch.mixed - (own * first + (1 - own) * second)) < 1e-5);
        assert_true(fabs((double)watch.mixed - record.loss[0]) < 1e-6);
    }
}

RUN_TEST(stops_are_not_seen, NULL)
{
    expect_stop_between(run,
                        WORDS("training.randaugment=2", "training.randaugment_magnitude=15", "training.mixup=0.8",
                              "training.cutmix=1", "training.iterations=7", "training.random_erasing=0.5"),
                        4);
}

/* Methods whose loss is more than the cross-entropy train on augmented images, too. */
RUN_TEST(every_key_changes_the_loss, NULL)
{
    static const char *const methods[] = {"method.name=moe_adapters", "method.name=lwf", "method.name=replay"},
                             *const keys[] = {"training.randaugment=2", "training.random_erasing=1", "training.mixup=1",
                                              "training.cutmix=1"};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        struct small_training plain = {.stop_at = 2};
        small_run_reopen(run, 1, WORDS(methods[m]));
        assert_int_equal(train(run, &plain), ERROR_STOPPED);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            struct small_training augmented = {.stop_at = 2};
            small_run_reopen(run, 1, WORDS(methods[m], keys[k]));
            assert_int_equal(train(run, &augmented), ERROR_STOPPED);
            if (!isfinite(augmented.loss[0]) || fabs(augmented.loss[0] - plain.loss[0]) < 1e-6)
                fail_msg("%s, %s: a loss of %g, without it %g", methods[m], keys[k], augmented.loss[0], plain.loss[0]);
        }
    }
}
