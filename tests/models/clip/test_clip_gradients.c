/* Every gradient of both towers against central differences of the loss; the same bits for any number of threads. */
#include "tests/models/small.h"

#include <string.h>

static void check_gradients(struct small *s)
{
    struct parameters *group = s->clip->parameters;
    small_loss(s, true);
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        assert_int_equal(p->offset * sizeof(float) % 64, 0); /* products read aligned rows faster */
        if (strncmp(p->name, "logit_", 6) != 0)              /* the loss is given its value */
            small_check_gradient(s, p->name, parameters_write(group, p->offset, p->size), group->gradients + p->offset,
                                 p->size);
    }
}

static void check_all(enum activation activation)
{
    struct small s;
    small_open(&s, 2, PARAMETERS_TRAINED, activation);
    check_gradients(&s);
    small_close(&s);
}

TEST(gradients_match_differences)
{
    check_all(ACTIVATION_QUICK_GELU);
}

TEST(gradients_match_with_gelu)
{
    check_all(ACTIVATION_GELU);
}

/* Also through attention pooling and the tower of texts without a mask. */
TEST(gradients_match_in_siglip)
{
    struct small s;
    small_open_siglip(&s, 2, PARAMETERS_TRAINED);
    assert_non_null(parameters_find(s.clip->parameters, "visual.attn_pool.probe"));
    assert_non_null(parameters_find(s.clip->parameters, "text_projection_bias"));
    check_gradients(&s);
    small_close(&s);
}

TEST(siglips_bits_depend_on_neither_threads_nor_batch)
{
    uint64_t bits[2];
    for (size_t threads = 1; threads <= 2; threads++) {
        struct small s;
        struct tensor one;
        small_open_siglip(&s, threads, PARAMETERS_TRAINED);
        small_loss(&s, true);
        digest(&s.d, s.clip->parameters->gradients, s.clip->parameters->values_count * sizeof(float));
        bits[threads - 1] = s.d.bits;
        small_encode(&s);
        size_t row = s.clip->dimensions.embed;
        const float *all = from_device(&s.d, (const float *)s.features[TOWER_IMAGE].data + row, row * sizeof *all);
        small_encode_images(&s, 1, 1, &one);
        expect_floats(&s.d, "features of an image alone", one.data, all, row);
        small_close(&s);
        assert_true(bits[threads - 1] == bits[0]);
    }
}

TEST(gradients_add_up)
{
    struct small s;
    small_open(&s, 2, PARAMETERS_TRAINED, ACTIVATION_QUICK_GELU);
    const struct parameters *group = s.clip->parameters;
    small_loss(&s, true);
    const float *once = from_device(&s.d, group->gradients, group->values_count * sizeof *once);
    double *twice = doubles(&s.d, once, group->values_count);
    for (size_t i = 0; i < group->values_count; i++)
        twice[i] *= 2;
    small_loss(&s, true);
    expect_close(&s.d, "gradients of two passes", group->gradients, twice, group->values_count, 1e-5);
    small_close(&s);
}

TEST(bits_do_not_depend_on_threads)
{
    uint64_t bits[3];
    for (size_t threads = 1; threads <= 3; threads++) {
        struct small s;
        small_open(&s, threads, PARAMETERS_TRAINED, ACTIVATION_QUICK_GELU);
        const struct parameters *group = s.clip->parameters;
        small_loss(&s, true);
        digest(&s.d, group->gradients, group->values_count * sizeof(float));
        digest(&s.d, s.features[TOWER_IMAGE].data, tensor_bytes(&s.features[TOWER_IMAGE]));
        digest(&s.d, s.features[TOWER_TEXT].data, tensor_bytes(&s.features[TOWER_TEXT]));
        bits[threads - 1] = s.d.bits;
        small_close(&s);
        assert_true(bits[threads - 1] == bits[0]);
    }
}
