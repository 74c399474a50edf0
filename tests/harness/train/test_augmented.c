/* Training on augmented images: what mixup and CutMix make of the loss; test_model_choices has stops and ranks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/loader.h"
#include "tests/harness/train/outcome.h"

/* What the first loss has to be of; operations have no context of their own, so there is one of these. */
static struct {
    const struct backend_ops *watched;
    size_t calls, count;
    int32_t labels[8], others[8];
    float own;
} watch;

static status watch_cross_entropy(struct backend *backend, const struct cross_entropy *arguments, struct error *failure)
{
    if (watch.calls++ == 0) { /* device memory is the host's */
        assert_int_equal(arguments->logits.rows, watch.count);
        assert_memory_equal(arguments->labels, watch.labels, sizeof watch.labels);
        assert_memory_equal(arguments->others, watch.others, sizeof watch.others);
        for (size_t i = 0; i < watch.count; i++)
            assert_memory_equal(&arguments->shares[i], &watch.own, sizeof watch.own);
    }
    return watch.watched->cross_entropy(backend, arguments, failure);
}

static void read_first_batch(const struct small_run *run)
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
    uint8_t pixels[8 * 16 * 16 * 3];
    must(loader_create(&loader, &settings, &error));
    must(loader_read(loader, 0, pixels, watch.labels, watch.others, &watch.own, &watch.count, &error));
    assert_true(watch.count == 8 && watch.own > 0.01f && watch.own < 0.99f);
    loader_destroy(loader);
}

/* The loss is own · CE(labels) + (1 − own) · CE(others), as test_backend_loss has it, of the loader's labels. */
RUN_TEST(the_loss_of_mixed_images, NULL)
{
    static const char *const kinds[] = {"training.mixup=1", "training.cutmix=1"};
    if (strcmp(test_backend_name(), "cpu") != 0)
        skip();
    for (size_t k = 0; k < 2; k++) {
        small_run_reopen(run, 1, WORDS("method.name=continual_ft", kinds[k], "training.iterations=7"));
        read_first_batch(run);
        watch.calls = 0;
        change_operations(run->experiment->model.backend, &watch.watched)->cross_entropy = watch_cross_entropy;
        learn(run, 1);
        assert_true(watch.calls > 0);
    }
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
        assert_int_equal(small_run_train(run, 1, &plain), ERROR_STOPPED);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            struct small_training augmented = {.stop_at = 2};
            small_run_reopen(run, 1, WORDS(methods[m], keys[k]));
            assert_int_equal(small_run_train(run, 1, &augmented), ERROR_STOPPED);
            if (!isfinite(augmented.loss[0]) || fabs(augmented.loss[0] - plain.loss[0]) < 1e-6)
                fail_msg("%s, %s: a loss of %g, without it %g", methods[m], keys[k], augmented.loss[0], plain.loss[0]);
        }
    }
}
