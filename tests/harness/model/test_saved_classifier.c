/* What a classifier's file answers without its suite: the classes that the run's own test had, and the same features. */
#include <math.h>

#include "datasets/loader.h"
#include "harness/commands/inputs/adapter_choice.h"
#include "harness/evaluate/evaluator.h"
#include "harness/evaluate/predictor.h"
#include "harness/model/head.h"
#include "tests/harness/model/classifiers.h"

enum { IMAGES = 12, SIDE = 16 };

static const char *const kinds[][6] = {
    {"method.ffn=dense"},         {"method.ffn=dense", "head.pool=mean_patches", "model.share_groups=1"},
    {"method.ffn=ewa", MIXTURE},  {"method.ffn=moe", MIXTURE},
    {"method.ffn=rmoe", MIXTURE}, {"method.ffn=widenet", MIXTURE}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void check_features(const char *path, const uint8_t *pixels, const struct test_set *set)
{
    struct encoder encoder;
    float found[IMAGES * WIDTH];
    struct encoder_settings settings = {
        .weights = path, .router = ROUTER_NONE, .backend = {.name = test_backend_name()}};
    must(encoder_open(&encoder, &settings, &error));
    assert_int_equal(encoder_width(&encoder), WIDTH);
    must(encoder_images(&encoder, pixels, IMAGES, found, &error));
    encoder_close(&encoder);
    for (size_t i = 0; i < IMAGES; i++) {
        double gap[WIDTH] = {0};
        plain_add_unit(gap, set->routed.features + i * WIDTH, WIDTH, -1);
        for (size_t c = 0; c < WIDTH; c++)
            assert_true(fabs((double)found[i * WIDTH + c] + gap[c]) < 1e-5);
    }
}

/* The softmax of W f + b of an image at its class, the highest, by the weights that the run has. */
static double confidence_of(const struct small_run *run, const float *feature, size_t class)
{
    const struct parameters *head = run->experiment->model.head->parameters(&run->experiment->model);
    float *values = small_run_group(head);
    const float *weight = values + parameters_find(head, "head.weight")->offset,
                *bias = values + parameters_find(head, "head.bias")->offset;
    double sum = 0, powers[CLASSES];
    for (size_t c = 0; c < CLASSES; c++)
        sum += powers[c] = exp((double)bias[c] + plain_dot(weight + c * WIDTH, feature, WIDTH));
    for (size_t c = 0; c < CLASSES; c++)
        assert_true(powers[c] <= powers[class] * (1 + 1e-5));
    return powers[class] / sum;
}

static void check_answers(const struct small_run *run, const char *path, const uint8_t *pixels,
                          const struct test_set *set)
{
    struct classifier_choice choice;
    struct predictor *predictor;
    struct answer answers[IMAGES];
    struct answer_rank ranks[IMAGES];
    must(classifier_choice_read(&choice, path, &(struct clip_stated){0}, &error));
    assert_true(choice.is_one);
    assert_int_equal(choice.about.classes, CLASSES);
    assert_string_equal(choice.metadata.tasks[0].name, "third");
    for (size_t c = 0; c < CLASSES; c++)
        assert_string_equal(choice.metadata.tasks[0].classes.items[c], dataset_class_name(set->task->dataset, c));
    struct predictor_settings settings = {
        .model = {.weights = path, .head = &head_linear, .backend = {.name = test_backend_name()}},
        .metadata = &choice.metadata,
        .router = ROUTER_NONE,
        .top = 1};
    must(predictor_open(&predictor, &settings, NULL, &error));
    assert_int_equal(predictor_resolution(predictor), SIDE);
    for (size_t i = 0; i < IMAGES; i++)
        answers[i].ranks = &ranks[i];
    must(predictor_answer(predictor, pixels, IMAGES, answers, &error));
    for (size_t i = 0; i < IMAGES; i++) {
        assert_int_equal(ranks[i].class_index, set->predicted[i]);
        double expected = confidence_of(run, set->routed.features + i * WIDTH, ranks[i].class_index);
        assert_true(fabs(ranks[i].confidence - expected) < 1e-4);
    }
    predictor_close(predictor);
    classifier_choice_free(&choice);
}

RUN_TEST(a_file_answers_as_its_run_did, NULL)
{
    uint8_t pixels[IMAGES * SIDE * SIDE * 3];
    for (size_t kind = 0; kind < KINDS; kind++) {
        const char *const *k = kinds[kind];
        char *path = classifier_file(run, WORDS(SCRATCH, k[0], k[1], k[2], k[3], k[4]));
        struct evaluator *evaluator = small_run_evaluator(run, NULL, 0);
        must(evaluator_task(evaluator, 0, 0, NULL, &error));
        const struct test_set *set = &evaluator->sets[0];
        assert_true(set->correct > IMAGES / 2); /* it has learnt something */
        struct loader_settings test = {
            .dataset = set->task->dataset, .split = SPLIT_TEST, .resolution = SIDE, .batch = IMAGES};
        assert_int_equal(read_batch(&test, 0, pixels, NULL), IMAGES);
        check_features(path, pixels, set);
        check_answers(run, path, pixels, set);
    }
}
