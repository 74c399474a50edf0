/* Method dpw: how many heads a task needs against the public code (record_dpw.py), and what a run trains and keeps. Stops are in
 * test_every_method.c. */
#include <math.h>
#include <string.h>

#include "harness/methods/prefixes/dpw.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/train/plain.h"
#include "tests/models/files/tensor_set.h"
#include "tests/recorded.h"

enum { CLASSES = 5, IMAGES = 40, WIDTH = 16 };

static void draw(float *values, size_t n, uint64_t *drawn)
{
    for (size_t i = 0; i < n; i++, ++*drawn)
        values[i] = recorded_draw(*drawn, 2);
}

TEST(fineness_is_that_of_the_public_code)
{
    float features[IMAGES * WIDTH], texts[CLASSES * WIDTH], expected;
    int32_t labels[IMAGES];
    uint64_t drawn = 0;
    struct safetensors *file = open_file(FIXTURES "/dpw.safetensors");
    must(safetensor_to_floats(safetensors_find(file, "fineness"), &expected, &error));
    safetensors_close(file);
    draw(features, IMAGES * WIDTH, &drawn);
    draw(texts, CLASSES * WIDTH, &drawn);
    for (size_t i = 0; i < IMAGES * WIDTH; i++)
        features[i] += texts[i / WIDTH % CLASSES * WIDTH + i % WIDTH] * 0.5f;
    for (size_t c = 0; c < CLASSES; c++) {
        float norm = sqrtf(plain_dot(texts + c * WIDTH, texts + c * WIDTH, WIDTH));
        for (size_t k = 0; k < WIDTH; k++)
            texts[c * WIDTH + k] /= norm;
    }
    for (size_t i = 0; i < IMAGES; i++)
        labels[i] = (int32_t)(3 + i % CLASSES);
    struct frozen_rows rows = {
        .n = IMAGES, .width = WIDTH, .first = 3, .classes = 3 + CLASSES, .features = features, .labels = labels};
    assert_true(fabs(dpw_fineness(&rows, texts) - (double)expected) < 1e-5 * (double)expected);

    /* One image of a class has no other to be near to; one class has none beside it; no image is right. */
    rows.n = CLASSES;
    assert_true(isfinite(dpw_fineness(&rows, texts)));
    rows.classes = 4;
    rows.n = 1;
    assert_true(dpw_fineness(&rows, texts) == 1);
    rows.classes = 3 + CLASSES;
    rows.n = CLASSES;
    for (size_t i = 0; i < CLASSES; i++)
        labels[i] = (int32_t)(3 + (i + 1) % CLASSES);
    for (size_t i = 0; i < CLASSES * WIDTH; i++)
        features[i] = texts[i];
    assert_true(isinf(dpw_fineness(&rows, texts)));
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* The slice of a task; NULL: the tensor has none of its own. */
static const float *slice(const struct parameter *p, const float *values, size_t task, size_t *n)
{
    *n = p->size / p->shape[0];
    return p->shape[0] > 1 ? values + p->offset + task * *n : NULL;
}

/* Heads may be as many as before; all images have the same class token in the first block; and the weights of a fresh image tower add up
 * to less than 1, so that its deltas do not count yet. */
static const char *const may_stay[] = {"prefix_heads", "visual.transformer.resblocks.0.attn.prefix_gate_variance",
                                       "visual.transformer.resblocks.0.attn.prefix_up_bias",
                                       "visual.transformer.resblocks.1.attn.prefix_up_bias"};

RUN_TEST(a_task_changes_its_own_values_alone, "method.name=dpw", "method.prefix_length=3", "method.prefix_heads=4",
         "method.prefix_rank=4", "selector.kind=task_gaussian", "training.optimizer=sgd", "training.momentum=0",
         "training.iterations=4", "training.learning_rate=1", NULL)
{
    const struct prefixes *prefixes = run->experiment->model.prefixes;
    learn(run, 0);
    const float *before = small_run_group(prefixes->parameters);
    learn(run, 1);
    const float *after = small_run_group(prefixes->parameters);
    size_t n, described = 0;
    for (size_t i = 0; i < prefixes->parameters->count; i++) {
        const struct parameter *p = &prefixes->parameters->list[i];
        assert_int_equal(p->shape[0], ends_with(p->name, "prefix_down") ? 1 : 3);
        for (size_t t = 0; t < p->shape[0] && p->shape[0] > 1; t++) {
            const float *was = slice(p, before, t, &n), *is = slice(p, after, t, &n);
            bool same = memcmp(was, is, n * sizeof *is) == 0, idle = false;
            for (size_t k = 0; k < sizeof may_stay / sizeof *may_stay; k++)
                idle = idle || ends_with(p->name, may_stay[k]);
            assert_true(idle ? t == 1 || same : same == (t != 1));
            if (ends_with(p->name, "variance") && t < 2)
                for (size_t k = 0; k < n; k++)
                    described += is[k] > 0 && is[k] != 1;
        }
    }
    assert_true(described > 0);
}
