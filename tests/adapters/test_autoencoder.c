/* The selector's autoencoders: the choice, how they start, training. The errors and steps are those of replay_model. */
#include "adapters/autoencoder.h"
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

static void expect_start(struct device *d, const struct parameters *group)
{
    static const char *const names[] = {"encoder.0.weight", "encoder.0.bias", "decoder.0.weight", "decoder.0.bias"};
    for (size_t i = 0; i < 4; i++) {
        const struct parameter *p = parameters_find(group, names[i]);
        const float *values = from_device(d, group->values + p->offset, p->size * sizeof *values);
        float bound = 1.0f / sqrtf(i < 2 ? WIDTH : CODE), largest = 0;
        for (size_t k = 0; k < p->size; k++)
            largest = fmaxf(largest, fabsf(values[k]));
        assert_true(largest <= bound && largest > 0.5f * bound);
    }
}

/* Of patterns that a short code can hold, and a little noise. */
static struct tensor draw_features(struct device *d)
{
    struct operand x = draw(d, ROWS * WIDTH, 1.0f);
    for (size_t i = PATTERNS * WIDTH; i < ROWS * WIDTH; i++)
        x.host[i] = x.host[i % (PATTERNS * WIDTH)] + 0.1f * x.host[i];
    operand_renew(d, &x);
    return (struct tensor){.data = x.device, .type = TENSOR_F32, .rank = 2, .shape = {ROWS, WIDTH}};
}

DEVICE_TEST(starts_as_a_linear_layer_does_and_training_lowers_the_loss)
{
    const struct step_state state = {.learning_rate = 0.01f};
    const struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .l2 = 1e-4};
    const struct step_state *device_state = to_device(d, &state, sizeof state);
    const struct tensor features = draw_features(d);
    struct autoencoder *coder;
    struct arena step;
    float loss, first = 0;
    must(d->ops->arena_create(d->backend, &step, (size_t)1 << 26, "step", &error));
    must(autoencoder_create(&coder, d->backend, &d->memory, WIDTH, CODE, PARAMETERS_TRAINED, &error));
    must(autoencoder_initialize(coder, 5, 2, &error));
    expect_start(d, coder->parameters);
    for (int i = 0; i < 100; i++) {
        float errors[ROWS];
        double mean = 0;
        must(autoencoder_errors(coder, &step, &features, errors, &error));
        for (int row = 0; row < ROWS; row++)
            mean += (double)errors[row] / ROWS;
        must(autoencoder_train_step(coder, &step, &features, device_state, &rule, &loss, &error));
        expect_close(d, "loss before the step", to_device(d, &loss, sizeof loss), &mean, 1, 1e-6);
        first = i == 0 ? loss : first;
    }
    assert_true(loss < 0.5f * first);
    assert_int_equal(step.used, 0);
    autoencoder_destroy(coder);
    d->ops->arena_destroy(d->backend, &step);
}
