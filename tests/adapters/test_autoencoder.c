/* The selector's autoencoders: the choice, the errors against plain loops, training. */
#include "adapters/experts/autoencoder.h"
#include "tests/models/backend/reference.h"
#include "tests/models/device.h"

#include <math.h>

enum { WIDTH = 65, CODE = 7, ROWS = 63, PATTERNS = 4 };

TEST(smallest_error_within_its_threshold_wins)
{
    static const float thresholds[] = {0.5f, 0.2f, 0.2f};
    static const struct {
        float errors[3];
        int choice;
    } cases[] = {{{0.3f, 0.1f, 0.4f}, 1},   {{0.3f, 0.4f, 0.4f}, 0},
                 {{0.6f, 0.3f, 0.25f}, -1},                          /* 2 wins, but is above its own */
                 {{0.4f, 0.3f, 0.25f}, -1},                          /* though 0 is below its own */
                 {{0.9f, 0.2f, 0.2f}, 1},                            /* ties: the lowest; at the threshold */
                 {{NAN, NAN, NAN}, -1},     {{NAN, 0.1f, 0.2f}, 1}}; /* one that diverged does not hide the rest */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(autoencoder_choice(cases[i].errors, thresholds, 3), cases[i].choice);
    assert_int_equal(autoencoder_choice(NULL, NULL, 0), -1);
}

struct coder {
    struct autoencoder *coder;
    struct arena step;
    struct tensor features;
    const float *host;
};

static struct coder open_coder(struct device *d)
{
    struct coder c = {0};
    must(d->ops->arena_create(d->backend, &c.step, (size_t)1 << 26, "step", &error));
    must(autoencoder_create(&c.coder, d->backend, &d->memory, WIDTH, CODE, PARAMETERS_TRAINED, &error));
    must(autoencoder_initialize(c.coder, 5, 2, &error));
    struct operand x = draw(d, ROWS * WIDTH, 1.0f);
    for (size_t i = PATTERNS * WIDTH; i < ROWS * WIDTH;
         i++) /* patterns that a short code can hold, and a little noise */
        x.host[i] = x.host[i % (PATTERNS * WIDTH)] + 0.1f * x.host[i];
    x.device = to_device(d, x.host, ROWS * WIDTH * sizeof(float));
    c.features = (struct tensor){.data = x.device, .type = TENSOR_F32, .rank = 2, .shape = {ROWS, WIDTH}};
    c.host = x.host;
    return c;
}

static void close_coder(struct device *d, struct coder *c)
{
    autoencoder_destroy(c->coder);
    d->ops->arena_destroy(d->backend, &c->step);
}

static const float *tensor_on_host(struct device *d, const struct coder *c, const char *name)
{
    const struct parameter *p = parameters_find(c->coder->parameters, name);
    assert_non_null(p);
    return from_device(d, c->coder->parameters->values + p->offset, p->size * sizeof(float));
}

/* y = sigmoid(x); r = sigmoid(W₂ ReLU(W₁ y + b₁) + b₂); mean (r − y)² */
static void reference_errors(struct device *d, const struct coder *c, double *errors)
{
    const float *w1 = tensor_on_host(d, c, "encoder.0.weight"), *b1 = tensor_on_host(d, c, "encoder.0.bias");
    const float *w2 = tensor_on_host(d, c, "decoder.0.weight"), *b2 = tensor_on_host(d, c, "decoder.0.bias");
    for (size_t i = 0; i < ROWS; i++) {
        double y[WIDTH], code[CODE];
        for (size_t j = 0; j < WIDTH; j++)
            y[j] = reference_activation(ACTIVATION_SIGMOID, (double)c->host[i * WIDTH + j]);
        for (size_t k = 0; k < CODE; k++) {
            double total = (double)b1[k];
            for (size_t j = 0; j < WIDTH; j++)
                total += (double)w1[k * WIDTH + j] * y[j];
            code[k] = fmax(total, 0);
        }
        for (size_t j = 0; j < WIDTH; j++) {
            double total = (double)b2[j];
            for (size_t k = 0; k < CODE; k++)
                total += (double)w2[j * CODE + k] * code[k];
            errors[i] += pow(reference_activation(ACTIVATION_SIGMOID, total) - y[j], 2) / WIDTH;
        }
    }
}

DEVICE_TEST(errors_match)
{
    struct coder c = open_coder(d);
    float errors[ROWS];
    double *expected = doubles(d, NULL, ROWS);
    reference_errors(d, &c, expected);
    must(autoencoder_errors(c.coder, &c.step, &c.features, errors, &error));
    expect_close(d, "errors", to_device(d, errors, sizeof errors), expected, ROWS, 1e-6);
    assert_int_equal(c.step.used, 0); /* nothing is left behind */
    close_coder(d, &c);
}

TEST(starts_as_a_linear_layer_does)
{
    struct device d;
    device_open(&d, 1);
    struct coder c = open_coder(&d);
    const char *const names[] = {"encoder.0.weight", "encoder.0.bias", "decoder.0.weight", "decoder.0.bias"};
    for (size_t i = 0; i < 4; i++) {
        const struct parameter *p = parameters_find(c.coder->parameters, names[i]);
        const float *values = tensor_on_host(&d, &c, names[i]);
        float bound = 1.0f / sqrtf(i < 2 ? WIDTH : CODE), largest = 0;
        for (size_t k = 0; k < p->size; k++)
            largest = fmaxf(largest, fabsf(values[k]));
        assert_true(largest <= bound && largest > 0.5f * bound);
    }
    close_coder(&d, &c);
    device_close(&d);
}

static double mean_error(struct coder *c)
{
    float errors[ROWS];
    double mean = 0;
    must(autoencoder_errors(c->coder, &c->step, &c->features, errors, &error));
    for (int i = 0; i < ROWS; i++)
        mean += (double)errors[i] / ROWS;
    return mean;
}

DEVICE_TEST(training_lowers_the_loss)
{
    struct coder c = open_coder(d);
    const struct step_state state = {.learning_rate = 0.01f};
    const struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .l2 = 1e-4};
    const struct step_state *device_state = to_device(d, &state, sizeof state);
    float loss, first = 0;
    for (int step = 0; step < 100; step++) {
        double mean = mean_error(&c);
        must(autoencoder_train_step(c.coder, &c.step, &c.features, device_state, &rule, &loss, &error));
        expect_close(d, "loss before the step", to_device(d, &loss, sizeof loss), &mean, 1, 1e-6);
        first = step == 0 ? loss : first;
    }
    assert_true(loss < 0.5f * first);
    assert_int_equal(c.step.used, 0);
    close_coder(d, &c);
}

/* With an ε far above the gradients, Adam's first step is −rate/ε · g, so the loss falls by the step's square · ε/rate. */
TEST(step_follows_the_gradient)
{
    struct device d;
    device_open(&d, 1);
    struct coder c = open_coder(&d);
    const struct parameters *group = c.coder->parameters;
    const struct step_state rate = {.learning_rate = 1e4f};
    const struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e4};
    const float *before = from_device(&d, group->values, group->values_count * sizeof *before);
    double loss = mean_error(&c), squares = 0;
    float reported;
    must(autoencoder_train_step(c.coder, &c.step, &c.features, to_device(&d, &rate, sizeof rate), &rule, &reported,
                                &error));
    const float *after = from_device(&d, group->values, group->values_count * sizeof *after);
    for (size_t i = 0; i < group->values_count; i++)
        squares += pow((double)after[i] - (double)before[i], 2);
    double fall = loss - mean_error(&c);
    if (!(squares > 1e-6 && fabs(fall - squares) < 0.05 * squares))
        fail_msg("the loss fell by %g, the gradient's square is %g", fall, squares);
    close_coder(&d, &c);
    device_close(&d);
}
