/* Every gradient of both towers against central differences of the loss, and that they add up; the same bits for any number of
 * threads. */
#include "tests/models/clip/groups.h"

/* A CLIP with either activation; and a SigLIP, whose gradients go through attention pooling and a tower of texts without a mask. */
static void open_form(struct small *s, size_t threads, int form)
{
    if (form == 2)
        small_open_siglip(s, threads, PARAMETERS_TRAINED);
    else
        small_open(s, threads, PARAMETERS_TRAINED, form == 0 ? ACTIVATION_QUICK_GELU : ACTIVATION_GELU);
    assert_int_equal(parameters_find(s->clip->parameters, "visual.attn_pool.probe") != NULL, form == 2);
    assert_int_equal(parameters_find(s->clip->parameters, "text_projection_bias") != NULL, form == 2);
}

TEST(gradients_match_differences_and_add_up)
{
    for (int form = 0; form < 3; form++) {
        struct small s;
        open_form(&s, 2, form);
        struct parameters *group = s.clip->parameters;
        size_t n = group->values_count;
        small_loss(&s, true);
        for (size_t i = 0; i < group->count; i++)
            assert_int_equal(group->list[i].offset * sizeof(float) % 64, 0); /* products read aligned rows faster */
        small_check_gradients(&s, "", group);
        double *twice = doubles(&s.d, from_device(&s.d, group->gradients, n * sizeof(float)), n);
        for (size_t i = 0; i < n; i++)
            twice[i] *= 2;
        small_loss(&s, true);
        expect_close(&s.d, "gradients of two passes", group->gradients, twice, n, 1e-5);
        small_close(&s);
    }
}

static int form_of_bits;

static uint64_t bits_of(size_t threads)
{
    struct small s;
    open_form(&s, threads, form_of_bits);
    small_loss(&s, true);
    digest_gradients(&s.d, s.clip->parameters);
    for (int t = 0; t < TOWERS; t++)
        digest(&s.d, s.features[t].data, tensor_bytes(&s.features[t]));
    small_expect_parts(&s);
    uint64_t bits = s.d.bits;
    small_close(&s);
    return bits;
}

TEST(bits_depend_on_neither_threads_nor_batch)
{
    for (form_of_bits = 0; form_of_bits < 3; form_of_bits += 2)
        expect_same_bits(bits_of);
}
