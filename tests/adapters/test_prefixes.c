/* Prefixes of keys and values: against DIKI's public block (record_prefixes.py made the file), their gradients by differences, a
 * prefix per sample, and a loss that falls while they learn. */
#include "adapters/prefixes.h"
#include "tests/models/clip/groups.h"
#include "tests/models/files/tensor_set.h"
#include "tests/recorded.h"

#include <stdio.h>
#include <string.h>

/* --- The public block --- */

enum { WIDTH = 128, HEADS = 2, POSITIONS = 7, BATCH = 3, TASKS = 3, LENGTH = 4 };

static float *draw_public(struct device *d, uint64_t *drawn, size_t n, double scale)
{
    float *host = host_room(d, n * sizeof *host);
    for (size_t i = 0; i < n; i++, ++*drawn)
        host[i] = recorded_draw(*drawn, scale);
    return to_device(d, host, n * sizeof *host);
}

static void draw_linear(struct device *d, uint64_t *drawn, struct linear *linear, size_t out, size_t in)
{
    *linear = (struct linear){.out = out, .in = in};
    linear->weight = (struct weight){.value = draw_public(d, drawn, out * in, 0.125)};
    linear->bias = (struct weight){.value = draw_public(d, drawn, out, 0.125)};
}

static void draw_norm(struct device *d, uint64_t *drawn, struct layer_norm_weights *norm)
{
    norm->gain = (struct weight){.value = draw_public(d, drawn, WIDTH, 2)};
    norm->bias = (struct weight){.value = draw_public(d, drawn, WIDTH, 2)};
}

struct public_case {
    const char *name;
    bool causal, weighted;
};

static void expect_recorded(struct device *d, const struct safetensors *file, const char *kind, const char *what,
                            const void *device)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", kind, what);
    const struct safetensor *found = safetensors_find(file, name);
    assert_non_null(found);
    size_t n = safetensor_elements(found);
    float *values = host_room(d, n * sizeof *values);
    must(safetensor_to_floats(found, values, &error));
    expect_close(d, name, device, doubles(d, values, n), n, d->backend->precision == PRECISION_F32 ? 2e-5 : 0.03);
}

static const struct public_case public_cases[] = {
    {"full", false, false}, {"causal", true, false}, {"weighted", false, true}};

DEVICE_TEST_OF(blocks_agree_with_the_public_code, public_cases)
{
    const struct public_case *c = parameters;
    const struct clip_dimensions dimensions = {.image_width = WIDTH, .image_blocks = 1, .text_width = WIDTH};
    const struct prefix_settings settings = {.tasks = TASKS, .length = {LENGTH}, .blocks = {1}};
    struct block block = {
        .width = WIDTH, .hidden = 4 * WIDTH, .heads = HEADS, .causal = c->causal, .activation = ACTIVATION_QUICK_GELU};
    struct safetensors *file = open_file(FIXTURES "/prefixes.safetensors");
    struct prefixes *prefixes;
    uint64_t drawn = 0;
    must(prefixes_create(&prefixes, d->backend, &d->memory, &dimensions, &settings, PARAMETERS_TRAINED, &error));
    draw_linear(d, &drawn, &block.in_proj, 3 * WIDTH, WIDTH);
    draw_linear(d, &drawn, &block.out_proj, WIDTH, WIDTH);
    draw_norm(d, &drawn, &block.ln_1);
    draw_norm(d, &drawn, &block.ln_2);
    draw_linear(d, &drawn, &block.c_fc, 4 * WIDTH, WIDTH);
    draw_linear(d, &drawn, &block.c_proj, WIDTH, 4 * WIDTH);
    size_t n = TASKS * 2 * LENGTH * WIDTH, values = BATCH * POSITIONS * WIDTH;
    must(d->ops->copy(d->backend, parameters_write_all(prefixes->parameters), draw_public(d, &drawn, n, 2),
                      n * sizeof(float), &error));
    struct tensor x = {.type = TENSOR_F32, .rank = 3, .shape = {BATCH, POSITIONS, WIDTH}}, dy = x, y = x, dx = x;
    x.data = draw_public(d, &drawn, values, 2);
    dy.data = draw_public(d, &drawn, values, 2);
    y.data = room(d, values * sizeof(float));
    dx.data = room(d, values * sizeof(float));
    struct block_context context = {.backend = d->backend,
                                    .arena = &d->memory,
                                    .training = true,
                                    .router = to_device(d, (const int32_t[BATCH]){1, 0, 1}, BATCH * sizeof(int32_t)),
                                    .positions = POSITIONS,
                                    .attention = prefixes_hooks(prefixes, TOWER_IMAGE)};
    struct block_saved saved;
    if (c->weighted)
        prefixes->towers[TOWER_IMAGE].weights =
            to_device(d, (const float[BATCH]){0.25f, 1, 0.75f}, BATCH * sizeof(float));
    must(block_forward(&context, &block, NULL, &x, &y, &saved, &error));
    expect_recorded(d, file, c->name, "out", y.data);
    must(block_backward(&context, &block, NULL, &saved, &dy, &dx, true, &error));
    expect_recorded(d, file, c->name, "dx", dx.data);
    expect_recorded(d, file, c->name, "dprefix", prefixes->parameters->gradients);
    prefixes_destroy(prefixes);
    safetensors_close(file);
}

/* --- Both towers --- */

static const struct prefix_settings small_prefixes = {.tasks = 3, .length = {3, 2}, .blocks = {2, 1}};

static struct prefixes *add_prefixes(struct small *s, const int32_t *images, const int32_t *prompts)
{
    struct prefixes *prefixes;
    must(prefixes_create(&prefixes, s->d.backend, &s->d.memory, &small_dimensions, &small_prefixes, PARAMETERS_TRAINED,
                         &error));
    must(prefixes_initialize(prefixes, 7, &error));
    for (int t = 0; t < TOWERS; t++)
        s->attention[t] = prefixes_hooks(prefixes, (enum tower)t);
    s->router[TOWER_IMAGE] = to_device(&s->d, images, SMALL_IMAGES * sizeof *images);
    s->router[TOWER_TEXT] = to_device(&s->d, prompts, SMALL_PROMPTS * sizeof *prompts);
    return prefixes;
}

static const int32_t images[SMALL_IMAGES] = {1, -1, 0}, prompts[SMALL_PROMPTS] = {1, 1, 0, -1},
                     task[SMALL_PROMPTS] = {1, 1, 1, 1};

/* A fresh prefix, or none, leaves the model as it was: the same bits. Afterwards samples of different tasks in one batch have
 * the features that they have alone, and those without a task their own. */
SMALL_TEST(a_prefix_per_sample, 2)
{
    size_t row = small_dimensions.embed * sizeof(float);
    const float *before[TOWERS] = {small_features(s, TOWER_IMAGE), small_features(s, TOWER_TEXT)};
    struct prefixes *prefixes = add_prefixes(s, images, prompts);
    for (int t = 0; t < TOWERS; t++)
        assert_memory_equal(small_features(s, (enum tower)t), before[t], tensor_bytes(&s->features[t]));
    group_draw(&s->d, prefixes->parameters, 0.5f);
    const float *together = small_features(s, TOWER_IMAGE);
    for (size_t i = 0; i < SMALL_IMAGES; i++) {
        size_t at = i * small_dimensions.embed;
        assert_int_equal(memcmp(before[TOWER_IMAGE] + at, together + at, row) == 0, images[i] < 0);
    }
    small_expect_parts(s);
    prefixes_destroy(prefixes);
}

TEST(gradients_match_differences)
{
    struct small s;
    for (enum parameters_mode mode = PARAMETERS_FROZEN; mode <= PARAMETERS_TRAINED; mode++) {
        small_open(&s, 2, mode, ACTIVATION_QUICK_GELU);
        struct prefixes *prefixes = add_prefixes(&s, images, prompts);
        struct parameters *towers = s.clip->parameters;
        const struct parameter *out = parameters_find(towers, "visual.transformer.resblocks.0.attn.out_proj.weight");
        group_draw(&s.d, prefixes->parameters, 0.5f);
        small_loss(&s, true);
        if (s.d.backend->precision == PRECISION_F32) {
            small_check_gradients(&s, "", prefixes->parameters);
            if (mode == PARAMETERS_TRAINED)
                small_check_gradient(&s, out->name, parameters_write(towers, out->offset, out->size),
                                     towers->gradients + out->offset, out->size);
        }
        prefixes_destroy(prefixes);
        small_close(&s);
    }
}

/* The prefixes of one task learn; those of the others keep their bits, whatever the optimizer's decay. */
SMALL_TEST(one_task_learns, 2)
{
    const struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.1};
    struct prefixes *prefixes = add_prefixes(s, task, task);
    struct parameters *group = prefixes->parameters;
    group_draw(&s->d, group, 0.5f);
    const float *before = small_values(s, group);
    must(prefixes_begin_task(prefixes, 1, &error));
    float first = small_loss(s, false);
    for (int i = 0; i < 10; i++) {
        small_loss(s, true);
        must(parameters_step(group, s->state, &rule, &error));
    }
    assert_true(small_loss(s, false) < first - 0.01f);
    const float *after = small_values(s, group);
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        size_t n = p->size / p->segments;
        for (size_t t = 0; t < p->segments; t++)
            assert_true((memcmp(after + p->offset + t * n, before + p->offset + t * n, n * sizeof *after) == 0) ==
                        (t != 1));
    }
    prefixes_destroy(prefixes);
}

SMALL_TEST(towers_need_the_blocks, 1)
{
    struct prefixes *prefixes;
    struct prefix_settings deep = small_prefixes;
    deep.blocks[TOWER_TEXT] = 3;
    must_refuse(
        prefixes_create(&prefixes, s->d.backend, &s->d.memory, &small_dimensions, &deep, PARAMETERS_FROZEN, &error),
        ERROR_ARGUMENT,
        "prefixes of 2 keys in 3 blocks: expected at most 64 keys, and a tower of this model has 2 blocks");
}

static status open_prefixes(struct small *s, struct prefixes **prefixes)
{
    struct safetensors *file = open_file(test_path());
    assert_true(prefix_file_is(file));
    status result = prefixes_open(prefixes, s->clip, &s->d.memory, file, &error);
    safetensors_close(file);
    return result;
}

SMALL_TEST(a_file_has_the_values_of_all_tasks, 2)
{
    static const char last[] = "transformer.resblocks.0.attn.prefix_pool.1";
    struct prefixes *opened = NULL, *prefixes = add_prefixes(s, task, task);
    for (int again = 0; again < 2; again++) { /* the second time into those that are there */
        group_draw(&s->d, prefixes->parameters, 0.5f);
        must(prefixes_save(prefixes, NULL, test_path(), &error));
        must(open_prefixes(s, &opened));
        assert_memory_equal(&opened->settings, &prefixes->settings, sizeof opened->settings);
        expect_same_group(&s->d, opened->parameters, prefixes->parameters);
    }
    edit_file(test_path(), &(struct file_edit){.drop = last}, NULL, 0);
    must_refuse(open_prefixes(s, &opened), ERROR_FORMAT, last, test_path());
    prefixes_destroy(opened);
    prefixes_destroy(prefixes);
}
