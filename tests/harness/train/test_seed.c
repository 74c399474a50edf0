/* SEED and deep mutual learning: their arithmetic against recorded numbers (record_seed.py), what they train, share and answer, and
 * that a stop is not seen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evaluate/evaluator.h"
#include "harness/methods/methods.h"
#include "harness/train/batches.h"
#include "harness/train/services/gaussians.h"
#include "models/class_head.h"
#include "models/vit.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/train/plain.h"
#include "tests/harness/train/record.h"
#include "tests/harness/whole_run.h"
#include "tests/recorded.h"

/* --- The public code --- */

enum { DRAWN_WIDTH = 5, ROWS = 24, TESTS = 7, CLASSES = 6, EXPERTS = 2, BATCH = 4, SCORES = 3 };

static uint64_t drawn;

static float *draw(size_t n, double scale)
{
    float *values = small_run_keep(malloc(n * sizeof *values));
    for (size_t i = 0; i < n; i++, drawn++)
        values[i] = recorded_draw(drawn, scale);
    return values;
}

/* The gradients of both networks' losses in their scores, by the formulas of the paper. */
static void mutual_gradients(const float *own, const float *other, const int32_t *labels, size_t n, size_t classes,
                             double *out)
{
    for (size_t i = 0; i < n; i++) {
        double sums[2] = {0};
        for (size_t c = 0; c < classes; c++) {
            sums[0] += exp((double)own[i * classes + c]);
            sums[1] += exp((double)other[i * classes + c]);
        }
        for (size_t c = 0; c < classes; c++) {
            double p = exp((double)own[i * classes + c]) / sums[0], q = exp((double)other[i * classes + c]) / sums[1];
            out[i * classes + c] = ((p - ((size_t)labels[i] == c)) + (p - q)) / (double)n;
        }
    }
}

RUN_TEST(the_arithmetic_is_the_public_codes, NULL)
{
    static float gaussians[EXPERTS][CLASSES][DRAWN_WIDTH * (DRAWN_WIDTH + 3) / 2];
    struct safetensors *file = open_file(FIXTURES "/seed.safetensors");
    const float *aware = small_run_recorded(file, "aware"), *agnostic = small_run_recorded(file, "agnostic"),
                *overlap = small_run_recorded(file, "overlap"), *mutual = small_run_recorded(file, "mutual");
    const struct gaussian_rule rule = {.width = DRAWN_WIDTH, .ridge = 1e-8};
    double sums[TESTS][CLASSES] = {{0}}, own[TESTS][2] = {{0}}, out[TESTS * CLASSES];
    drawn = 0;
    assert_int_equal(gaussian_values(DRAWN_WIDTH), sizeof gaussians[0][0] / sizeof(float));
    for (size_t e = 0; e < EXPERTS; e++)
        for (size_t c = 2 * e; c < CLASSES; c++) {
            float *rows = draw(ROWS * DRAWN_WIDTH, 2), *place = draw(DRAWN_WIDTH, 1);
            for (size_t i = 0; i < ROWS * DRAWN_WIDTH; i++)
                rows[i] += place[i % DRAWN_WIDTH];
            must(gaussian_fit(gaussians[e][c], &rule, rows, ROWS, NULL, &error));
        }
    const float *tests = draw(TESTS * EXPERTS * DRAWN_WIDTH, 3);
    for (size_t e = 0; e < EXPERTS; e++) {
        float features[TESTS][DRAWN_WIDTH];
        for (size_t i = 0; i < TESTS; i++)
            memcpy(features[i], tests + (i * EXPERTS + e) * DRAWN_WIDTH, sizeof features[i]);
        size_t known = CLASSES - 2 * e;
        gaussian_posteriors(gaussians[e][2 * e], known, DRAWN_WIDTH, 3, features[0], TESTS, NULL, out);
        for (size_t i = 0; i < TESTS * known; i++)
            sums[i / known][2 * e + i % known] += out[i];
        gaussian_posteriors(gaussians[e][2], 2, DRAWN_WIDTH, 3, features[0], TESTS, NULL, out);
        for (size_t i = 0; i < TESTS * 2; i++)
            own[i / 2][i % 2] += out[i];
        record_expect_near(gaussian_mean_divergence(gaussians[e][4], 2, DRAWN_WIDTH), overlap[e], 1e-4);
    }
    for (size_t i = 0; i < TESTS * CLASSES; i++)
        record_expect_near(sums[i / CLASSES][i % CLASSES] / (i % CLASSES < 2 ? 1 : 2), agnostic[i], 1e-4);
    for (size_t i = 0; i < TESTS * 2; i++)
        record_expect_near(own[i / 2][i % 2], aware[i], 1e-4);
    const float *scores[2] = {draw(BATCH * SCORES, 6), draw(BATCH * SCORES, 6)};
    for (size_t k = 0; k < 2; k++) {
        mutual_gradients(scores[k], scores[1 - k], (const int32_t[]){2, 0, 1, 2}, BATCH, SCORES, out);
        for (size_t i = 0; i < BATCH * SCORES; i++)
            record_expect_near(out[i], mutual[k * BATCH * SCORES + i], 1e-4);
    }
    safetensors_close(file);
}

/* A covariance of fewer images than features takes a ridge that is as large as it has to be; of one image, too. */
RUN_TEST(few_images_have_a_gaussian, NULL)
{
    enum { WIDE = 16 };
    const float *rows = draw((size_t)4 * WIDE, 1);
    float *gaussian = draw(gaussian_values(WIDE), 1);
    double density[2];
    for (size_t n = 1; n <= 4; n++) {
        must(gaussian_fit(gaussian, &(struct gaussian_rule){.width = WIDE, .ridge = 1e-30}, rows, n, NULL, &error));
        gaussian_log_densities(gaussian, WIDE, rows, 1, NULL, density, 1);
        assert_true(isfinite(density[0]));
    }
    float bad[WIDE] = {NAN};
    must_refuse(gaussian_fit(gaussian, &(struct gaussian_rule){.width = WIDE, .ridge = 1e-8}, bad, 1, NULL, &error),
                ERROR_FORMAT, "covariance", "16 features");
}

/* --- Training --- */

#define TINY                                                                                                           \
    "head.name=linear", "model.weights=scratch", "model.resolution=16", "model.patch=8", "model.width=64",             \
        "model.blocks=2", "training.learning_rate=1e-3"
#define SEED TINY, "method.name=seed", "method.experts=1", "evaluation.label_space=seen"
#define DML TINY, "method.name=dml", "data.order=third"

static size_t image_width(const struct small_run *run)
{
    return run->experiment->model.clip->dimensions.image_width;
}

/* A batch of the task through a network of the run: features [n, width], and scores [n, classes] of a layer. */
static float *features_of(struct small_run *run, struct clip *clip, const struct batch *batch)
{
    struct encoding encoding = {.arena = &run->experiment->model.step_memory};
    struct tower_pass pass;
    struct tensor features;
    must(clip_encode_images(clip, &encoding, &batch->images, &pass, &features, &error));
    return small_run_values(run, features.data, batch->count * image_width(run));
}

static float *scores_of(const struct small_run *run, const struct linear_head *head, const float *features, size_t n)
{
    const float *values = small_run_group(head->parameters);
    size_t classes = head->linear.out, width = head->linear.in;
    float *scores = small_run_keep(malloc(n * classes * sizeof *scores));
    for (size_t i = 0; i < n * classes; i++)
        scores[i] = (float)(plain_dot(features + i / classes * width, values + i % classes * width, width) +
                            (double)values[head->parameters->list[1].offset + i % classes]);
    return scores;
}

static struct batches *take_batch(struct small_run *run, const struct task *task, struct batch *batch)
{
    struct batches *batches;
    struct model *model = &run->experiment->model;
    must(batches_open_task(&batches, model, &run->experiment->data, task, 0, 1, &error));
    arena_reset(&model->step_memory);
    must(batches_take(batches, batch, &error));
    must(model->backend->ops->zero(model->backend, model->loss, LOSS_TERMS * sizeof(float), &error));
    return batches;
}

static double cross_entropy(const float *scores, const int32_t *labels, size_t n, size_t classes)
{
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t c = 0; c < classes; c++)
            sum += exp((double)scores[i * classes + c] - (double)scores[i * classes + (size_t)labels[i]]);
        total += log(sum) / (double)n;
    }
    return total;
}

static void put_tower(const struct small_run *run, const float *values)
{
    struct parameters *group = run->experiment->model.clip->parameters;
    must(group->backend->ops->upload(group->backend, parameters_write_all(group), values,
                                     group->values_count * sizeof *values, &error));
}

static double loss_of(struct small_run *run, const struct task *task, const struct batch *batch)
{
    struct model *model = &run->experiment->model;
    struct arena_mark mark = arena_mark(&model->step_memory);
    must(model->backend->ops->zero(model->backend, model->loss, LOSS_TERMS * sizeof(float), &error));
    must(model->settings.method->loss(&run->experiment->method, task, batch, &error));
    arena_release(&model->step_memory, mark);
    return (double)*small_run_values(run, model->loss, 1);
}

/* In the middle of a later task: (1 − alpha) · CE + alpha · mean (f − f_before)², and its gradient by a difference. */
RUN_TEST(later_tasks_keep_their_features, SEED, "method.alpha=0.75", "training.label_smoothing=0",
         "training.learning_rate=1e-2", NULL)
{
    struct model *model = &run->experiment->model;
    const struct task *task = &run->experiment->data.tasks[1];
    struct parameters *tower = model->clip->parameters;
    struct small_training part = {.stop_at = 3};
    struct batch batch;
    learn(run, 0);
    float *before = small_run_group(tower);
    assert_int_equal(small_run_train(run, 1, &part), ERROR_STOPPED);
    float *now = small_run_group(tower);
    struct batches *batches = take_batch(run, task, &batch);
    size_t n = batch.count, width = image_width(run), steepest = 0;
    const int32_t *labels = (const int32_t *)small_run_values(run, (const float *)batch.labels.labels, n);
    put_tower(run, before);
    float *old = features_of(run, model->clip, &batch);
    put_tower(run, now);
    float *features = features_of(run, model->clip, &batch), *scores = scores_of(run, model->head_state, features, n);
    must(trained_groups_reset(model, &error));
    double change = plain_gap(features, old, n * width) / (double)(n * width), found = loss_of(run, task, &batch);
    assert_true(change > 1e-4);
    assert_true(fabs(found - (0.25 * cross_entropy(scores, labels, n, 3) + 0.75 * change)) < 1e-5);
    float *gradients = small_run_values(run, tower->gradients, tower->values_count);
    for (size_t i = 0; i < tower->values_count; i++)
        steepest = fabsf(gradients[i]) > fabsf(gradients[steepest]) ? i : steepest;
    double losses[2];
    for (int side = 0; side < 2; side++) {
        now[steepest] += side == 0 ? 1e-3f : -2e-3f;
        put_tower(run, now);
        losses[side] = loss_of(run, task, &batch);
    }
    assert_true(fabs((losses[0] - losses[1]) / 2e-3 / (double)gradients[steepest] - 1) < 0.02);
    batches_close(batches);
}

static bool same(const float *a, const float *b, const struct parameter *p)
{
    return memcmp(a + p->offset, b + p->offset, p->size * sizeof *a) == 0;
}

/* After the first task, the embedding and the first block stay; without sharing all is trained. */
RUN_TEST(shared_blocks_are_trained_once, NULL)
{
    for (size_t shared = 0; shared <= 2; shared++) {
        small_run_reopen(
            run, 1, WORDS(SEED, "training.weight_decay=0.1", small_run_format("method.shared_blocks=%zu", shared)));
        const struct parameters *tower = run->experiment->model.clip->parameters;
        float *start = small_run_group(tower);
        learn(run, 0);
        float *first = small_run_group(tower);
        learn(run, 1);
        float *second = small_run_group(tower);
        for (size_t i = 0; i < tower->count; i++) {
            assert_false(same(start, first, &tower->list[i]));
            assert_int_equal(same(first, second, &tower->list[i]), clip_is_first(tower->list[i].name, shared));
        }
    }
    must_refuse(small_run_try(run, 1, WORDS(SEED, "method.shared_blocks=3")), ERROR_ARGUMENT, "method.shared_blocks",
                "2 blocks", "3");
}

/* The second expert starts as the first one after its task, and the first stays. */
RUN_TEST(early_tasks_have_experts_of_their_own, SEED, "method.experts=2", "training.iterations=1",
         "training.learning_rate=1e-9", NULL)
{
    const struct run *e = run->experiment;
    const struct parameters *tower = e->model.clip->parameters;
    learn(run, 0);
    float *first = small_run_group(tower);
    learn(run, 1);
    assert_true(plain_gap(first, small_run_group(tower), tower->values_count) < 1e-6);
    must(e->model.settings.method->evaluation_model((struct method_run *)&e->method, 1, &error));
    assert_true(plain_gap(first, small_run_group(tower), tower->values_count) == 0);
}

/* Classes of tasks to come have no answer but the first; those learned are answered better than by chance. */
RUN_TEST(experts_answer, SEED, "method.experts=2", "training.iterations=24", NULL)
{
    struct evaluator *evaluator = small_run_evaluator(run, NULL, 0);
    size_t correct = 0, images = 0;
    for (size_t k = 0; k < SMALL_RUN_TASKS; k++)
        learn(run, k);
    evaluator->labels.seen = SMALL_RUN_TASKS;
    must(evaluator_refresh(evaluator, &error));
    for (size_t k = 0; k < SMALL_RUN_TASKS; k++) {
        must(evaluator_task(evaluator, SMALL_RUN_TASKS - 1, k, NULL, &error));
        correct += evaluator->sets[k].correct;
        images += evaluator->sets[k].n;
    }
    assert_int_equal(images, 27);
    assert_true(correct > 9);
}

RUN_TEST(a_stop_is_not_seen, NULL)
{
    expect_stop_between(run, WORDS(SEED, "training.iterations=6"), 3);
    expect_stop_between(run, WORDS(SEED, "method.experts=2", "method.shared_blocks=1", "training.iterations=6"), 3);
}

/* Answers, too, after a stop anywhere. */
RUN_TEST(a_stop_is_not_seen_in_the_answers, NULL)
{
    const char *const *words = WORDS(SEED, "method.experts=2", "training.iterations=4", "run.checkpoints=none");
    struct backend_spy count = {0};
    small_run_reopen(run, 1, words);
    must(whole_run(run, "whole.db", &count));
    const char *expected = whole_run_results(run, "whole.db");
    for (size_t at = 3; at < count.updates; at += count.updates / 3)
        expect_resumed(run, words, (struct backend_spy){.stop_at_update = at}, expected);
}

RUN_TEST(gpus_are_not_seen, NULL)
{
    const char *const *experts = WORDS(SEED, "training.iterations=3"), *const *networks = WORDS(
                                                                           TINY, "method.name=dml", "data.order=third",
                                                                           "training.iterations=3");
    expect_ranks_unseen(run, experts, 3, 1e-4, 1e-2);
    if (small_run_gpus() >= 3) {
        struct outcome alone = outcome_train(run, networks, 1, 1), together = outcome_train(run, networks, 3, 1);
        for (size_t i = 0; i < alone.steps.count; i++)
            assert_true(fabs(alone.steps.loss[i] - together.steps.loss[i]) < 1e-4);
        expect_same_ranks(run, 3);
    }
}

/* --- Two networks --- */

static float *bias_gradient(const struct small_run *run, const struct linear_head *head)
{
    return small_run_values(run, head->parameters->gradients + head->parameters->list[1].offset, head->linear.out);
}

/* The gradients in the biases of both layers are the sums of the recorded formula; nothing of one tower is the other's. */
RUN_TEST(networks_learn_from_one_another, DML, "training.label_smoothing=0", "training.learning_rate=1e-2", NULL)
{
    struct model *model = &run->experiment->model;
    const struct task *task = &run->experiment->data.tasks[0];
    const struct linear_head *heads[2] = {model->head_state, model->peer_head};
    struct small_training part = {.stop_at = 3};
    struct batch batch;
    assert_int_equal(small_run_train(run, 0, &part), ERROR_STOPPED);
    struct batches *batches = take_batch(run, task, &batch);
    size_t n = batch.count, classes = heads[0]->linear.out;
    const int32_t *labels = (const int32_t *)small_run_values(run, (const float *)batch.labels.labels, n);
    const float *scores[2] = {scores_of(run, heads[0], features_of(run, model->clip, &batch), n),
                              scores_of(run, heads[1], features_of(run, model->peer, &batch), n)};
    double *expected = small_run_keep(malloc(n * classes * sizeof *expected));
    assert_true(plain_gap(scores[0], scores[1], n * classes) > 1e-3);
    must(trained_groups_reset(model, &error));
    loss_of(run, task, &batch);
    for (size_t k = 0; k < 2; k++) {
        double sums[16] = {0};
        mutual_gradients(scores[k], scores[1 - k], labels, n, classes, expected);
        for (size_t i = 0; i < n * classes; i++)
            sums[i % classes] += expected[i];
        for (size_t c = 0; c < classes; c++)
            assert_true(fabs(sums[c] - (double)bias_gradient(run, heads[k])[c]) < 1e-5);
    }
    batches_close(batches);
}

/* Both train what they share, the peer's own copy of which is idle. */
RUN_TEST(networks_share_their_first_blocks, DML, "method.shared_blocks=1", "training.weight_decay=0.1", NULL)
{
    const struct model *model = &run->experiment->model;
    const struct parameters *tower = model->clip->parameters, *peer = model->peer->parameters;
    float *starts[2] = {small_run_group(tower), small_run_group(peer)};
    size_t all = trained_values(model);
    learn(run, 0);
    float *ends[2] = {small_run_group(tower), small_run_group(peer)};
    for (size_t i = 0; i < tower->count; i++) {
        assert_false(same(starts[0], ends[0], &tower->list[i]));
        assert_int_equal(same(starts[1], ends[1], &peer->list[i]), clip_is_first(peer->list[i].name, 1));
    }
    small_run_reopen(run, 1, WORDS(DML));
    assert_true(trained_values(&run->experiment->model) > all);
}

/* Of all blocks, too, and from the same weights. */
RUN_TEST(networks_stay_apart, NULL)
{
    const char *const *const starts[] = {WORDS(DML, "method.shared_blocks=2"),
                                         WORDS("head.name=linear", "method.name=dml", "data.order=third")};
    for (size_t k = 0; k < 2; k++) {
        small_run_reopen(run, 1, starts[k]);
        const struct model *model = &run->experiment->model;
        learn(run, 0);
        const struct linear_head *head = model->head_state;
        size_t n = head->parameters->values_count;
        double apart = plain_gap(small_run_group(head->parameters), small_run_group(model->peer_head->parameters), n);
        assert_true(apart > 1e-3);
    }
}

/* The mean of both answers; one alone as the other may not. */
RUN_TEST(the_mean_answers, DML, "training.iterations=8", NULL)
{
    static const char *const who[] = {"ensemble", "first", "second"};
    uint16_t answers[3][12];
    for (size_t k = 0; k < 3; k++) {
        small_run_reopen(run, 1, WORDS(DML, "training.iterations=8", small_run_format("method.answer=%s", who[k])));
        struct evaluator *evaluator = small_run_evaluator(run, NULL, 0);
        struct model *model = &run->experiment->model;
        const struct clip *clip = model->clip;
        learn(run, 0);
        must(evaluator_refresh(evaluator, &error));
        evaluator->labels.seen = 1;
        must(evaluator_task(evaluator, 0, 0, NULL, &error));
        assert_ptr_equal(model->clip, clip);
        struct test_set *set = &evaluator->sets[0];
        assert_int_equal(set->n, 12);
        memcpy(answers[k], set->predicted, sizeof answers[k]);
        struct batch batch;
        for (size_t i = 0; k > 0 && i < set->n; i++) {
            arena_reset(&model->step_memory);
            struct batches *batches = take_test_image(run, set->task, i, &batch);
            const float *features = features_of(run, k == 1 ? model->clip : model->peer, &batch);
            const float *scores =
                scores_of(run, k == 1 ? (struct linear_head *)model->head_state : model->peer_head, features, 1);
            assert_int_equal(answers[k][i], plain_best(scores, 4));
            batches_close(batches);
        }
    }
    for (size_t i = 0; i < 12; i++)
        if (answers[1][i] == answers[2][i])
            assert_int_equal(answers[0][i], answers[1][i]);
}

RUN_TEST(a_stop_of_two_networks_is_not_seen, NULL)
{
    for (size_t shared = 0; shared < 2; shared++) {
        const char *const *words =
            WORDS(DML, "training.iterations=6", small_run_format("method.shared_blocks=%zu", shared));
        struct small_training part = {.stop_at = 3};
        struct outcome whole = outcome_train(run, words, 1, 1), parts;
        small_run_reopen(run, 1, words);
        assert_int_equal(small_run_train(run, 0, &part), ERROR_STOPPED);
        small_run_resume(run, 0, 3, words);
        must(small_run_train(run, 0, &part));
        parts = outcome_of(&run->experiment->model, whole.name);
        parts.steps = part;
        expect_same(&parts, &whole);
    }
}
