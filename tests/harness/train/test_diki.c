/* Method diki in a run: which prefixes a test image takes and with which weight, and what a stop leaves. */
#include <math.h>
#include <string.h>

#include "harness/evaluate/evaluator.h"
#include "harness/selectors/selector.h"
#include "harness/train/batches.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/train/plain.h"

/* Only the task's own prefixes change. */
static void expect_trained(const struct prefixes *prefixes, size_t task, const float *before, const float *after)
{
    for (size_t i = 0; i < prefixes->parameters->count; i++) {
        const struct parameter *p = &prefixes->parameters->list[i];
        size_t n = p->size / p->segments;
        for (size_t t = 0; t < p->segments; t++)
            assert_true((memcmp(before + p->offset + t * n, after + p->offset + t * n, n * sizeof *after) == 0) ==
                        (t != task));
    }
}

/* What the evaluator makes of image i of a set, worked out here: the cosines of its features with the weighted prefixes of its
 * router, to the classes with the mean weight. */
static size_t answer_of(struct small_run *run, const struct test_set *set, size_t i)
{
    struct run *e = run->experiment;
    struct model *model = &e->model;
    struct prefixes *prefixes = model->prefixes;
    size_t embed = model->clip->dimensions.embed, classes = dataset_classes(set->task->dataset), images = 0;
    int router = set->router[i];
    double total = 0;
    for (size_t k = 0; k < set->n; k++)
        if (set->router[k] == router) {
            total += 1 / (1 + exp((double)set->errors[router][k] / (double)embed + 1));
            images++;
        }
    prefixes->text_weight = (float)(total / (double)images);
    struct tensor features, on_device;
    struct tower_pass pass;
    float *text = take_class_features(run, set->task, router);
    struct batch batch;
    arena_reset(&model->step_memory);
    struct batches *batches = take_test_image(run, set->task, i, &batch);
    float weight = 1 / (1 + expf(set->errors[router][i] / (float)embed + 1));
    must(tensor_take(&on_device, &model->step_memory, TENSOR_F32, "weight", 1, (size_t[]){1}, &error));
    must(model->backend->ops->upload(model->backend, on_device.data, &weight, sizeof weight, &error));
    struct encoding encoding = {.arena = &model->step_memory, .attention = prefixes_hooks(prefixes, TOWER_IMAGE)};
    must(model_fill(model, &model->step_memory, 1, router, &encoding.router, &error));
    prefixes->towers[TOWER_IMAGE].weights = on_device.data;
    must(clip_encode_images(model->clip, &encoding, &batch.images, &pass, &features, &error));
    prefixes->towers[TOWER_IMAGE].weights = NULL;
    float *image = small_run_values(run, features.data, embed);
    batches_close(batches);
    float cosines[16];
    assert_true(classes <= 16);
    for (size_t c = 0; c < classes; c++)
        cosines[c] = (float)plain_dot(image, text + c * embed, embed);
    return plain_best(cosines, classes);
}

RUN_TEST(images_take_the_prefixes_of_the_densest_task, "method.name=diki", "method.prefix_length=3",
         "method.prefix_blocks=1", "selector.kind=task_gaussian", "training.optimizer=sgd", "training.momentum=0",
         "training.iterations=4", "training.learning_rate=5", "run.evaluation_batch=2", NULL)
{
    struct run *e = run->experiment;
    struct selector *selector = small_run_selector(run);
    struct evaluator *evaluator = small_run_evaluator(run, selector, 0);
    for (size_t j = 0; j < 2; j++) {
        float *before = small_run_group(e->model.prefixes->parameters);
        learn(run, j);
        must(selector_train(selector, &e->data.tasks[j], NULL, &error));
        expect_trained(e->model.prefixes, j, before, small_run_group(e->model.prefixes->parameters));
    }
    must(evaluator_refresh(evaluator, &error));
    for (size_t j = 0; j < SMALL_RUN_TASKS; j++) {
        struct test_set *set = &evaluator->sets[j];
        must(evaluator_zero_shot(evaluator, j, NULL, &error));
        must(evaluator_task(evaluator, 1, j, NULL, &error));
        for (size_t i = 0; i < set->n; i++) {
            int densest = set->errors[1][i] < set->errors[0][i];
            assert_int_equal(set->router[i], densest);
            assert_int_equal(set->predicted[i], answer_of(run, set, i));
        }
        e->model.prefixes->text_weight = 1;
    }
}
