/* The losses of the classification head against plain loops, and their gradients against differences. */
#include <math.h>

#include "models/class_head.h"
#include "tests/models/device.h"

enum { PAIRS = 5, CLASSES = 4, WIDTH = 6 };
static const int32_t numbers[PAIRS] = {2, 0, 2, 2, 0}; /* classes 1 and 3 have no image */
static const float scale = 5, smoothing = 0.2f, weight = 0.7f;

struct contrast {
    struct device *d;
    struct arena step;
    struct operand images, texts;
    struct tensor gradients[2]; /* of both */
    int32_t *labels;
    float *loss;
};

static struct tensor rows_of(const struct operand *operand, size_t rows)
{
    return (struct tensor){.data = operand->device, .type = TENSOR_F32, .rank = 2, .shape = {rows, WIDTH}};
}

static float loss_of(void *context)
{
    struct contrast *c = context;
    struct tensor images = rows_of(&c->images, PAIRS), texts = rows_of(&c->texts, CLASSES);
    float loss;
    arena_reset(&c->step);
    must(c->d->ops->zero(c->d->backend, c->loss, sizeof *c->loss, &error));
    must(class_head_contrast(c->d->backend, &c->step,
                             &(struct class_contrast){.image_features = &images,
                                                      .text_features = &texts,
                                                      .labels = c->labels,
                                                      .scale = scale,
                                                      .smoothing = smoothing,
                                                      .weight = weight,
                                                      .loss = c->loss},
                             &c->gradients[0], &c->gradients[1], &error));
    must(c->d->ops->download(c->d->backend, &loss, c->loss, sizeof loss, &error));
    return loss;
}

static double cosine(const float *x, const float *y)
{
    double dot = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < WIDTH; i++) {
        dot += (double)x[i] * (double)y[i];
        xx += (double)x[i] * (double)x[i];
        yy += (double)y[i] * (double)y[i];
    }
    return dot / sqrt(xx * yy);
}

/* The cross-entropy of one row of pairs, or of one column; the target: every pair of the same label alike. */
static double one_side(const double logits[PAIRS][PAIRS], size_t i, bool column)
{
    double sum = 0, all = 0, own = 0, same = 0;
    for (size_t j = 0; j < PAIRS; j++) {
        double logit = column ? logits[j][i] : logits[i][j];
        sum += exp(logit);
        all += logit;
        own += numbers[j] == numbers[i] ? logit : 0;
        same += numbers[j] == numbers[i];
    }
    return log(sum) - (1 - (double)smoothing) * own / same - (double)smoothing * all / PAIRS;
}

/* CLIP's target is the pair itself: the same in sum, as pairs of one label share their text. */
DEVICE_TEST(contrast)
{
    struct contrast c = {.d = d,
                         .images = draw(d, PAIRS * WIDTH, 1.0f),
                         .texts = draw(d, CLASSES * WIDTH, 1.0f),
                         .labels = to_device(d, numbers, sizeof numbers),
                         .loss = room(d, sizeof(float))};
    double logits[PAIRS][PAIRS], expected = 0;
    must(d->ops->arena_create(d->backend, &c.step, (size_t)1 << 20, "step", &error));
    for (size_t i = 0; i < PAIRS; i++)
        for (size_t j = 0; j < PAIRS; j++)
            logits[i][j] = (double)scale * cosine(c.images.host + i * WIDTH, c.texts.host + (size_t)numbers[j] * WIDTH);
    for (size_t i = 0; i < PAIRS; i++)
        expected += (one_side(logits, i, false) + one_side(logits, i, true)) / (2 * PAIRS);
    expected *= (double)weight;
    loss_of(&c);
    expect_close(d, "loss", c.loss, &expected, 1, 1e-6);
    float *kept[2]; /* the step's memory is emptied */
    for (size_t i = 0; i < 2; i++) {
        size_t bytes = tensor_bytes(&c.gradients[i]);
        kept[i] = to_device(d, digest(d, c.gradients[i].data, bytes), bytes);
    }
    const float *of_texts = from_device(d, kept[1], CLASSES * WIDTH * sizeof *of_texts);
    for (size_t i = 0; i < WIDTH; i++)
        assert_true(of_texts[WIDTH + i] == 0 && of_texts[3 * WIDTH + i] == 0);
    check_gradient(d, "images", c.images.device, kept[0], PAIRS * WIDTH, loss_of, &c);
    check_gradient(d, "texts", c.texts.device, kept[1], CLASSES * WIDTH, loss_of, &c);
    d->ops->arena_destroy(d->backend, &c.step);
}
