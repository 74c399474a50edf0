/* Training and evaluation know the head of a model by its table alone: with another table they follow that one. Here a class
 * is one number, its place among the classes of its task counted from 1, which is its score for every image. */
#include <stdlib.h>
#include <string.h>

#include "harness/evaluate/evaluator.h"
#include "tests/harness/small_run.h"

enum { MOST = 16 };

static status begin_nothing(struct model *model, const struct task *task, int32_t router, struct arena *arena,
                            struct head_classes *classes, struct error *failure)
{
    (void)model, (void)task, (void)router, (void)arena, (void)failure;
    *classes = (struct head_classes){0};
    return OK;
}

static status lose_seven(struct model *model, const struct head_classes *classes, struct head_batch *batch,
                         struct error *failure)
{
    const float seven = 7;
    (void)classes;
    TRY(tensor_take(&batch->dfeatures, &model->step_memory, TENSOR_F32, "nothing", 2, batch->features->shape, failure));
    TRY(model->backend->ops->zero(model->backend, batch->dfeatures.data, tensor_bytes(&batch->dfeatures), failure));
    return model->backend->ops->upload(model->backend, model->loss, &seven, sizeof seven, failure);
}

static size_t one(const struct model *model)
{
    (void)model;
    return 1;
}

static size_t asked; /* for rows of classes */

static status places(struct model *model, const struct task *task, int router, struct arena *arena, int32_t *chosen,
                     struct tensor *rows, struct error *failure)
{
    size_t classes = dataset_classes(task->dataset);
    float values[MOST];
    (void)router, (void)chosen;
    asked++;
    for (size_t c = 0; c < classes; c++)
        values[c] = (float)(c + 1);
    TRY(tensor_take(rows, arena, TENSOR_F32, "classes", 2, (size_t[]){classes, 1}, failure));
    return model->backend->ops->upload(model->backend, rows->data, values, classes * sizeof *values, failure);
}

static size_t no_texts(const struct task *task)
{
    (void)task;
    return 0;
}

static status the_rows(struct model *model, const struct tensor *features, const struct tensor *rows,
                       struct tensor *scores, struct error *failure)
{
    size_t shape[] = {features->shape[0], rows->shape[0]};
    assert_int_equal(features->shape[1], model->clip->dimensions.embed);
    TRY(tensor_take(scores, &model->step_memory, TENSOR_F32, "scores", 2, shape, failure));
    for (size_t i = 0; i < shape[0]; i++)
        TRY(model->backend->ops->copy(model->backend, (float *)scores->data + i * shape[1], rows->data,
                                      shape[1] * sizeof(float), failure));
    return OK;
}

static const struct head places_win = {.name = "places",
                                       .begin_task = begin_nothing,
                                       .loss = lose_seven,
                                       .width = one,
                                       .classes = places,
                                       .encoded = no_texts,
                                       .scores = the_rows};

/* Prompts were prepared by the real head, which is returned: it also forgets them. */
static const struct head *replace_head(struct small_run *run)
{
    const struct head *real = run->experiment->model.head;
    run->experiment->model.head = &places_win;
    return real;
}

static void expect_all(const struct test_set *set, uint16_t class_index)
{
    for (size_t i = 0; i < set->n; i++)
        assert_int_equal(set->predicted[i], class_index);
}

/* And rows that depend on more than the experts of texts are not kept. */
RUN_TEST(an_image_gets_the_class_with_the_highest_score, NULL)
{
    const struct head *real = replace_head(run);
    struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
    for (size_t j = 0; j < SMALL_RUN_TASKS; j++) {
        uint16_t last = (uint16_t)(dataset_classes(run->experiment->data.tasks[j].dataset) - 1);
        expect_all(&evaluator->sets[j], last);
        must(evaluator_with_router(evaluator, j, (int)j, NULL, &error));
        expect_all(&evaluator->sets[j], last);
        asked = 0;
        must(evaluator_with_router(evaluator, j, (int)j, NULL, &error));
        assert_int_equal(asked, 1);
    }
    run->experiment->model.head = real;
}

RUN_TEST(classes_of_all_tasks_are_joined, "evaluation.label_space=all", NULL)
{
    const struct head *real = replace_head(run);
    expect_all(&small_run_evaluator(run, NULL, 1)->sets[0], 2 + 3 + 4 - 1);
    run->experiment->model.head = real;
}

/* A loss of the head alone, whose gradient is 0: nothing is learned. */
RUN_TEST(training_follows_the_gradient_of_the_head, "method.name=continual_ft", NULL)
{
    const struct head *real = replace_head(run);
    const struct parameters *group = run->experiment->model.clip->parameters;
    struct small_training training = {0};
    float *before = small_run_group(group);
    must(small_run_train(run, 0, &training));
    assert_int_equal(training.count, run->experiment->data.tasks[0].settings.iterations);
    for (size_t i = 0; i < training.count; i++)
        assert_true(training.loss[i] == 7);
    float *after = small_run_group(group);
    for (size_t i = 0; i < group->values_count; i++) /* −0 becomes 0 */
        assert_true(before[i] == after[i]);
    run->experiment->model.head = real;
}
