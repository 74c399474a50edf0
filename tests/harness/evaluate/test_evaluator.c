#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evaluate/evaluator.h"
#include "harness/train/batches.h"
#include "tests/harness/train/outcome.h"

static void check_counts(const struct test_set *set)
{
    size_t right = 0;
    for (size_t i = 0; i < set->n; i++) {
        assert_int_equal(set->right[i], set->predicted[i] == (uint16_t)set->labels[i]);
        right += set->right[i];
    }
    assert_int_equal(set->correct, right);
}

static void expect_zero_shot(const struct test_set *set)
{
    assert_memory_equal(set->predicted, set->zero_shot, set->n * sizeof *set->predicted);
    check_counts(set);
}

/* With the data naming the task: trained ones through their router, the others as zero-shot CLIP has it,
 * without encoding an image. */
RUN_TEST(oracle_computes_only_what_was_trained, "training.iterations=20", "training.learning_rate=1e-2", NULL)
{
    struct backend_spy spy = {0};
    struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
    learn(run, 0);
    must(evaluator_refresh(evaluator, &error));
    small_run_watch(run, &spy);
    for (size_t j = 1; j < SMALL_RUN_TASKS; j++) {
        struct test_set *set = &evaluator->sets[j];
        must(evaluator_task(evaluator, 0, j, NULL, &error));
        for (size_t i = 0; i < set->n; i++)
            assert_int_equal(set->router[i], -1);
        expect_zero_shot(set);
    }
    assert_int_equal(spy.encodings, 0);
    must(evaluator_task(evaluator, 0, 0, NULL, &error));
    assert_int_equal(spy.encodings, 2); /* 6 images, 4 at a time */
    assert_int_equal(evaluator->sets[0].router[0], 0);
    check_counts(&evaluator->sets[0]);
    must(evaluator_task(evaluator, 1, 1, NULL, &error)); /* router 1 now, though it was never trained */
    assert_int_equal(evaluator->sets[1].router[0], 1);
}

/* A method that trains nothing: no image is encoded after the zero-shot row, whose answers they are. */
RUN_TEST(zero_shot_is_computed_once, "method.name=zero_shot", NULL)
{
    struct backend_spy spy = {0};
    struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
    small_run_watch(run, &spy);
    for (size_t j = 0; j < SMALL_RUN_TASKS; j++) {
        struct test_set *set = &evaluator->sets[j];
        must(evaluator_task(evaluator, 0, j, NULL, &error));
        expect_zero_shot(set);
        assert_int_equal(spy.encodings, 0);
        must(evaluator_without_adapters(evaluator, j, NULL, &error)); /* computed again, the same */
        expect_zero_shot(set);
        spy.encodings = 0;
    }
}

/* Makes expert `expert` of every image block another one. */
static void change_expert(struct small_run *run, size_t expert)
{
    const struct adapter_tower *tower = &run->experiment->model.adapters->towers[TOWER_IMAGE];
    float *values = small_run_adapters(run, TOWER_IMAGE);
    for (size_t b = 0; b < tower->blocks; b++) {
        const struct parameter *bias = &tower->parameters->list[tower->banks[b].parts[EXPERT_UP_BIAS]];
        size_t n = bias->shape[1], at = bias->offset + expert * n;
        for (size_t i = 0; i < n; i++)
            values[at + i] += 0.5f;
        must(tower->parameters->backend->ops->upload(tower->parameters->backend,
                                                     parameters_write(tower->parameters, at, n), values + at,
                                                     n * sizeof *values, &error));
    }
}

/* Images that an evaluation of task j after it encodes. */
static size_t encoded_now(struct evaluator *evaluator, size_t j)
{
    size_t before = evaluator->cache->images_encoded;
    must(evaluator_refresh(evaluator, &error));
    must(evaluator_task(evaluator, j, j, NULL, &error));
    return evaluator->cache->images_encoded - before;
}

static bool chose(const struct test_set *set, size_t image, size_t expert)
{
    for (size_t i = 0; i < set->routed.choices; i++)
        if (set->routed.chosen[image * set->routed.choices + i] == (int32_t)expert)
            return true;
    return false;
}

/* Images whose experts changed are encoded again, no other, and every answer is what it would be without memory. */
RUN_TEST(only_what_can_have_changed_is_computed, "training.iterations=20", "training.learning_rate=1e-2", NULL)
{
    struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
    const struct test_set *set = &evaluator->sets[1];
    learn(run, 0);
    learn(run, 1);
    assert_int_equal(encoded_now(evaluator, 1), set->n);
    assert_int_equal(encoded_now(evaluator, 1), 0);
    expect_as_computed(evaluator, 1, 1);
    size_t experts = run->experiment->model.settings.adapter.experts, spared = 0;
    for (size_t expert = 0; expert < experts; expert++) {
        size_t users = 0;
        for (size_t i = 0; i < set->n; i++)
            users += chose(set, i, expert);
        change_expert(run, expert);
        assert_int_equal(encoded_now(evaluator, 1), users);
        expect_as_computed(evaluator, 1, 1);
        spared += set->n - users;
    }
    assert_true(spared > 0);
    learn(run, 2);
    encoded_now(evaluator, 1);
    expect_as_computed(evaluator, 1, 1);
}

static size_t asked; /* for rows of classes */
static const struct head *real_head;

static size_t no_texts(const struct task *task)
{
    return 0;
}

static status count_classes(struct model *model, const struct task *task, int router, struct arena *arena,
                            int32_t *chosen, struct tensor *rows, struct error *failure)
{
    asked++;
    return real_head->classes(model, task, router, arena, chosen, rows, failure);
}

/* They may depend on more than experts. */
RUN_TEST(rows_of_a_head_without_texts_are_not_kept, NULL)
{
    struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
    struct head head = *(real_head = run->experiment->model.head);
    head.encoded = no_texts;
    head.classes = count_classes;
    run->experiment->model.head = &head;
    for (int i = 0; i < 2; i++)
        must(evaluator_with_router(evaluator, 0, 0, NULL, &error));
    assert_int_equal(asked, 2);
    run->experiment->model.head = real_head;
}

static status lose_a_score(struct model *model, const struct tensor *features, const struct tensor *rows,
                           struct tensor *scores, struct error *failure)
{
    static const float bad = NAN;
    TRY(real_head->scores(model, features, rows, scores, failure));
    return model->backend->ops->upload(model->backend, (float *)scores->data + 3, &bad, sizeof bad, failure);
}

static status own_scores(struct method_run *run, const struct task *task, const float *features, size_t n,
                         size_t classes, float *scores, struct error *failure)
{
    scores[(n - 1) * classes] = INFINITY;
    return OK;
}

#define NO_ANSWER ": its similarities to the classes are not finite, so it has no answer"

/* Of the head, at the second class of the second image; and of a method, at the first of the last one. */
RUN_TEST(scores_that_are_not_finite_are_no_answer, NULL)
{
    const struct method *before;
    struct evaluator *evaluator = small_run_evaluator(run, NULL, 1);
    struct head head = *(real_head = run->experiment->model.head);
    head.scores = lose_a_score;
    run->experiment->model.head = &head;
    must_refuse(evaluator_without_adapters(evaluator, 0, NULL, &error), ERROR_FORMAT, "first: image toy[1]" NO_ANSWER);
    run->experiment->model.head = real_head;
    change_method(run, &before)->scores = own_scores;
    must_refuse(evaluator_task(evaluator, 0, 0, NULL, &error), ERROR_FORMAT, "first: image toy[5]" NO_ANSWER);
}

/* The choices of an image by itself and their gates, straight from the hooks: [blocks, samples, K], samples 1, or the tokens. */
struct choices {
    int32_t chosen[64];
    float gates[64];
};

static void choose_alone(struct small_run *run, const struct test_set *set, size_t i, size_t size,
                         struct choices *found)
{
    struct model *model = &run->experiment->model;
    struct adapters *adapters = model->adapters;
    struct batch batch;
    struct tensor choices, gates, features;
    struct tower_pass pass;
    struct encoding encoding = {
        .arena = &model->step_memory, .state = model->state, .hooks = adapters_hooks(adapters, TOWER_IMAGE)};
    arena_reset(encoding.arena);
    struct batches *batches = take_test_image(run, set->task, i, &batch);
    must(tensor_take(&choices, encoding.arena, TENSOR_I32, "choices", 1, &size, &error));
    must(tensor_take(&gates, encoding.arena, TENSOR_F32, "gates", 1, &size, &error));
    must(model_fill(model, encoding.arena, 1, set->router[i], &encoding.router, &error));
    adapters_keep_choices(adapters, TOWER_IMAGE, choices.data, gates.data);
    must(clip_encode_images(model->clip, &encoding, &batch.images, &pass, &features, &error));
    adapters_keep_choices(adapters, TOWER_IMAGE, NULL, NULL);
    must(model->backend->ops->download(model->backend, found->chosen, choices.data, tensor_bytes(&choices), &error));
    must(model->backend->ops->download(model->backend, found->gates, gates.data, tensor_bytes(&gates), &error));
    batches_close(batches);
}

/* An evaluator that counts from now on, of a run that learned the second task. */
static struct evaluator *open_counting(struct small_run *run, const char *word, const char *more)
{
    small_run_reopen(run, 1, WORDS("training.iterations=20", "training.learning_rate=1e-2", word, more));
    struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
    learn(run, 1);
    encoded_now(evaluator, 1);
    assert_true(evaluator->sets[1].experts.counts == NULL && evaluator->sets[1].patches.experts == NULL);
    evaluator->counts_experts = true;
    return evaluator;
}

/* Of all images, by class, with features kept and computed anew; samples: of an image. */
static void check_class_experts(struct small_run *run, const char *routing, size_t samples)
{
    struct evaluator *evaluator = open_counting(run, routing, NULL);
    const struct test_set *set = &evaluator->sets[1];
    const struct class_experts *found = &set->experts;
    size_t per_block = samples * run->experiment->model.settings.adapter.top_k, size = 0;
    for (int again = 0; again < 2; again++) {
        encoded_now(evaluator, 1);
        size_t served = 0;
        size = found->blocks * found->classes * found->experts;
        uint64_t *expected = small_run_keep(calloc(size, sizeof *expected));
        double *gates = small_run_keep(calloc(size, sizeof *gates));
        assert_int_equal(found->classes, 3);
        for (size_t i = 0; i < set->n; i++) {
            struct choices alone;
            choose_alone(run, set, i, found->blocks * per_block, &alone);
            for (size_t c = 0; c < found->blocks * per_block; c++) {
                size_t at = (c / per_block * found->classes + (size_t)set->labels[i]) * found->experts +
                            (size_t)alone.chosen[c];
                served += expected[at]++ == 0;
                gates[at] += (double)alone.gates[c];
            }
        }
        assert_memory_equal(found->counts, expected, size * sizeof *expected);
        for (size_t i = 0; i < size; i++)
            assert_true(fabs(found->gates[i] - gates[i]) <= 1e-5 * gates[i]);
        assert_true(served > found->blocks * found->classes); /* else a mistake in the order would not be seen */
        change_expert(run, 0);                                /* some features are kept, others not */
    }
    must(evaluator_with_router(evaluator, 1, -1, NULL, &error)); /* no router, no choice */
    for (size_t i = 0; i < size; i++)
        assert_int_equal(found->counts[i], 0);
}

RUN_TEST(experts_of_classes_are_counted, NULL)
{
    check_class_experts(run, "adapter.routing=per_sample", 1);
    check_class_experts(run, "run.keep_features=false", 1);
    check_class_experts(run, "adapter.routing=per_token", 1 + 2 * 2);
}

/* Of 9 images, 4 that are asked for are every second, and 64 are all. */
RUN_TEST(patches_have_the_experts_that_they_choose, NULL)
{
    for (size_t step = 1; step <= 2; step++) {
        struct evaluator *evaluator = open_counting(
            run, "adapter.routing=per_token", step == 2 ? "evaluation.patch_images=4" : "evaluation.patch_images=64");
        const struct patch_experts *found = &evaluator->sets[1].patches;
        encoded_now(evaluator, 1);
        size_t top_k = run->experiment->model.settings.adapter.top_k, size = found->blocks * 5 * top_k, changes = 0;
        struct choices alone;
        assert_true(top_k > 1 && found->blocks > 1); /* else a mistake in the order would not be seen */
        assert_int_equal(found->images, step == 2 ? 4 : 9);
        assert_int_equal(found->side, 2);
        for (size_t i = 0; i < found->images; i++) {
            assert_int_equal(patch_experts_item(found, i), i * step);
            choose_alone(run, &evaluator->sets[1], i * step, size, &alone);
            for (size_t at = 0; at < found->blocks * 4; at++) {
                int32_t expert = found->experts[i * found->blocks * 4 + at];
                assert_int_equal(expert, alone.chosen[(at / 4 * 5 + 1 + at % 4) * top_k]);
                changes += at % 4 > 0 && expert != found->experts[i * found->blocks * 4 + at - 1];
            }
        }
        assert_true(changes > 0);
        must(evaluator_with_router(evaluator, 1, -1, NULL, &error)); /* no router, no choice */
        for (size_t at = 0; at < found->images * found->blocks * 4; at++)
            assert_int_equal(found->experts[at], -1);
    }
}

RUN_TEST(averaged_experts_are_not_counted, "adapter.router=random_uniform", "adapter.top_k=1", "adapter.routers=one",
         "adapter.freeze=none", "selector.kind=none", "adapter.towers=image", "adapter.experts=2", "merge.policy=ewa",
         "training.iterations=4", NULL)
{
    struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
    learn(run, 0);
    evaluator->counts_experts = true;
    encoded_now(evaluator, 0);
    assert_null(evaluator->sets[0].experts.counts);
}

/* Full batches are recorded where a backend can, results come a batch later, and the last batch is smaller: the same bits as of
 * all images at once. */
RUN_TEST(batches_change_nothing, NULL)
{
    enum { TASK = 1, IMAGES = 9, BATCHES = 5, PLAIN = 3, WIDTH = 64, EMBED = 16 };
    static const char *const sizes[] = {"run.evaluation_batch=64", "run.evaluation_batch=2"};
    float *answers[2];
    size_t bytes = 0;
    for (int i = 0; i < 2; i++) {
        small_run_reopen(run, 1, WORDS(sizes[i]));
        struct backend_spy spy = {0};
        struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
        const struct test_set *set = &evaluator->sets[TASK];
        learn(run, TASK);
        must(evaluator_refresh(evaluator, &error));
        small_run_watch(run, &spy);
        must(evaluator_task(evaluator, TASK, TASK, NULL, &error));
        bool records = run->experiment->model.backend->asynchronous;
        assert_int_equal(spy.encodings, i == 0 ? 1 : records ? PLAIN : BATCHES); /* two full batches and the last */
        const void *parts[] = {set->means, set->features, set->routed.features, set->routed.chosen, set->routed.gates};
        const size_t choices = set->routed.choices, widths[] = {WIDTH, EMBED, EMBED, choices, choices};
        assert_true(choices > 0);
        bytes = IMAGES * (WIDTH + 2 * EMBED + 2 * choices) * sizeof(float);
        float *next = answers[i] = small_run_keep(malloc(bytes));
        for (size_t k = 0; k < sizeof parts / sizeof *parts; next += IMAGES * widths[k++])
            memcpy(next, parts[k], IMAGES * widths[k] * sizeof(float));
    }
    assert_memory_equal(answers[1], answers[0], bytes);
}

/* An autoencoder's errors on the test images are computed once; images above the threshold keep their zero-shot
 * answer. */
RUN_TEST(errors_are_kept, NULL)
{
    struct selector *selector = small_run_selector(run);
    struct evaluator *evaluator = small_run_evaluator(run, selector, SMALL_RUN_TASKS);
    struct test_set *set = &evaluator->sets[1];
    must(selector_train(selector, &run->experiment->data.tasks[0], NULL, &error));
    must(evaluator_task(evaluator, 0, 1, NULL, &error));
    const float *kept = set->errors[0];
    assert_non_null(kept);
    assert_null(set->errors[1]);
    selector->thresholds[0] = 0; /* nothing is below */
    must(evaluator_task(evaluator, 0, 1, NULL, &error));
    assert_ptr_equal(set->errors[0], kept);
    for (size_t i = 0; i < set->n; i++)
        assert_int_equal(set->router[i], -1);
    expect_zero_shot(set);
    selector->thresholds[0] = INFINITY; /* everything is */
    must(evaluator_task(evaluator, 0, 1, NULL, &error));
    for (size_t i = 0; i < set->n; i++)
        assert_int_equal(set->router[i], 0);
}

RUN_TEST(stops_at_once, NULL)
{
    struct stop stop = {.signal = 2};
    struct evaluator *evaluator = small_run_evaluator(run, NULL, 0);
    assert_int_equal(evaluator_zero_shot(evaluator, 0, &stop, &error), ERROR_STOPPED);
    must(evaluator_zero_shot(evaluator, 0, NULL, &error));
    assert_int_equal(evaluator_task(evaluator, 0, 0, &stop, &error), ERROR_STOPPED);
}
