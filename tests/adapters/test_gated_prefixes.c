/* Prefixes with gates: against DPW's public block (harness/train/record_dpw.py made the file), their gradients by differences, one
 * task that learns, and their file. */
#include "adapters/gated_prefixes.h"
#include "tests/models/clip/groups.h"
#include "tests/models/files/tensor_set.h"
#include "tests/recorded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- The public block --- */

enum {
    WIDTH = 128,
    HEADS = 2,
    BATCH = 2,
    TASKS = 2,
    TASK = 1,
    LENGTH = 4,
    RANK = 8,
    USED = 4,
    MOST = 8,
    ALL = MOST * LENGTH
};
static const size_t positions[TOWERS] = {6, 5};

struct public_block {
    struct device *d;
    struct safetensors *file;
    struct block block;
    struct clip clip; /* of this block alone */
    struct prefixes *prefixes;
    struct prefix_layer *layer;
    struct tensor x, dy, y, dx;
    uint64_t drawn;
};

static float *draw_host(struct public_block *p, size_t n, double scale)
{
    float *host = host_room(p->d, n * sizeof *host);
    for (size_t i = 0; i < n; i++, p->drawn++)
        host[i] = recorded_draw(p->drawn, scale);
    return host;
}

static float *draw_public(struct public_block *p, size_t n, double scale)
{
    return to_device(p->d, draw_host(p, n, scale), n * sizeof(float));
}

static void draw_linear(struct public_block *p, struct linear *linear, size_t out, size_t in)
{
    *linear = (struct linear){.out = out, .in = in};
    linear->weight = (struct weight){.value = draw_public(p, out * in, 0.25)};
    linear->bias = (struct weight){.value = draw_public(p, out, 0.25)};
}

static void draw_norm(struct public_block *p, struct layer_norm_weights *norm)
{
    norm->gain = (struct weight){.value = draw_public(p, WIDTH, 2)};
    norm->bias = (struct weight){.value = draw_public(p, WIDTH, 2)};
}

static const struct parameter *tensor(const struct public_block *p, enum gated_tensor which)
{
    return &p->prefixes->parameters->list[p->layer->index + which];
}

/* The part of a tensor or of its gradients that task TASK has, on the device. */
static size_t part(const struct public_block *p, enum gated_tensor which, size_t *n)
{
    const struct parameter *t = tensor(p, which);
    *n = t->size / t->shape[0];
    return t->offset + (t->shape[0] > 1 ? TASK * *n : 0);
}

static void place(struct public_block *p, enum gated_tensor which, const float *values, size_t count)
{
    struct parameters *group = p->prefixes->parameters;
    size_t n, offset = part(p, which, &n);
    assert_true(count <= n);
    must(p->d->ops->upload(p->d->backend, parameters_write(group, offset, n), values, count * sizeof *values, &error));
}

/* With the block's weights, all drawn in the script's order; a task may have twice the heads that it uses. */
static void open_public(struct public_block *p, struct device *d, enum tower tower)
{
    const struct clip_dimensions n = {.image_width = WIDTH, .image_blocks = 1, .text_width = WIDTH, .text_blocks = 1};
    struct prefix_settings settings = {.tasks = TASKS, .rank = RANK};
    settings.length[tower] = LENGTH;
    settings.blocks[tower] = 1;
    settings.heads[tower] = MOST;
    settings.positions[tower] = positions[tower];
    p->d = d;
    p->block = (struct block){.width = WIDTH,
                              .hidden = 4 * WIDTH,
                              .heads = HEADS,
                              .causal = tower == TOWER_TEXT,
                              .activation = ACTIVATION_QUICK_GELU};
    draw_linear(p, &p->block.in_proj, 3 * WIDTH, WIDTH);
    draw_linear(p, &p->block.out_proj, WIDTH, WIDTH);
    draw_norm(p, &p->block.ln_1);
    draw_norm(p, &p->block.ln_2);
    draw_linear(p, &p->block.c_fc, 4 * WIDTH, WIDTH);
    draw_linear(p, &p->block.c_proj, WIDTH, 4 * WIDTH);
    p->clip = (struct clip){.backend = d->backend};
    p->clip.towers[tower].width = WIDTH;
    p->clip.towers[tower].count = 1;
    p->clip.towers[tower].blocks = &p->block;
    must(prefixes_create(&p->prefixes, d->backend, &d->memory, &n, &settings, PARAMETERS_TRAINED, &error));
    must(prefixes_begin_task(p->prefixes, TASK, &error));
    p->layer = &p->prefixes->towers[tower].layers[0];
}

static const float *recorded(const struct public_block *p, const char *tower, const char *what, size_t *n)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", tower, what);
    const struct safetensor *found = safetensors_find(p->file, name);
    assert_non_null(found);
    *n = safetensor_elements(found);
    float *values = host_room(p->d, *n * sizeof *values);
    must(safetensor_to_floats(found, values, &error));
    return values;
}

static void expect_recorded(const struct public_block *p, const char *tower, const char *what, const float *device)
{
    size_t n;
    const float *values = recorded(p, tower, what, &n);
    expect_close(p->d, what, device, doubles(p->d, values, n), n,
                 p->d->backend->precision == PRECISION_F32 ? 5e-5 : 0.05);
}

/* Rows of LENGTH · USED recorded values, of which the tensor has ALL. */
static void expect_columns(const struct public_block *p, const char *tower, const char *what, const float *device,
                           size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        size_t n;
        const float *values = recorded(p, tower, what, &n);
        assert_int_equal(n, rows * USED * LENGTH);
        expect_close(p->d, what, device + r * ALL, doubles(p->d, values + r * USED * LENGTH, USED * LENGTH),
                     USED * LENGTH, p->d->backend->precision == PRECISION_F32 ? 5e-5 : 0.1);
    }
}

static void place_drawn(struct public_block *p, enum tower tower)
{
    size_t n = positions[tower], values = BATCH * n * WIDTH;
    float *bias = host_room(p->d, n * ALL * sizeof *bias);
    place(p, GATED_SCORES, draw_host(p, USED * LENGTH * WIDTH, 0.5), USED * LENGTH * WIDTH);
    place(p, GATED_VALUES, draw_host(p, LENGTH * WIDTH, 2), LENGTH * WIDTH);
    const float *drawn = draw_host(p, n * USED * LENGTH, 4);
    for (size_t i = 0; i < n * USED * LENGTH; i++)
        bias[i / (USED * LENGTH) * ALL + i % (USED * LENGTH)] = drawn[i];
    place(p, GATED_BIAS, bias, n * ALL);
    place(p, GATED_UP, draw_host(p, WIDTH * RANK, 4), WIDTH * RANK);
    place(p, GATED_UP_BIAS, draw_host(p, WIDTH, 4), WIDTH);
    place(p, GATED_DOWN, draw_host(p, RANK * WIDTH, 0.5), RANK * WIDTH);
    place(p, GATED_HEADS, &(float){USED}, 1);
    p->x = p->dy = p->y = p->dx = (struct tensor){.type = TENSOR_F32, .rank = 3, .shape = {BATCH, n, WIDTH}};
    p->x.data = draw_public(p, values, 2);
    p->dy.data = draw_public(p, values, 2);
    p->y.data = room(p->d, values * sizeof(float));
    p->dx.data = room(p->d, values * sizeof(float));
}

static struct block_context context_of(const struct public_block *p, enum tower tower, bool training)
{
    return (struct block_context){.backend = p->d->backend,
                                  .arena = &p->d->memory,
                                  .tower = tower,
                                  .training = training,
                                  .router =
                                      to_device(p->d, (const int32_t[BATCH]){TASK, TASK}, BATCH * sizeof(int32_t)),
                                  .positions = positions[tower],
                                  .attention = prefixes_hooks(p->prefixes, tower)};
}

static void expect_weighted(struct public_block *p, enum tower tower, const char *name, const char *kind,
                            const float weights[BATCH])
{
    struct block_context context = context_of(p, tower, false);
    p->prefixes->towers[tower].weights = to_device(p->d, weights, BATCH * sizeof *weights);
    must(block_forward(&context, &p->block, NULL, &p->x, &p->y, NULL, &error));
    if (p->d->backend->precision == PRECISION_F32) /* rounding decides which values are dropped */
        expect_recorded(p, name, kind, p->y.data);
    p->prefixes->towers[tower].weights = NULL;
}

static float *gradient(const struct public_block *p, enum gated_tensor which)
{
    size_t n;
    return p->prefixes->parameters->gradients + part(p, which, &n);
}

/* The moments of the scores of the first rows. */
static void expect_moments(struct public_block *p, const struct block_context *context)
{
    double sums[2 * ALL] = {0};
    float seen[BATCH * ALL];
    struct block_context testing = *context;
    testing.training = false;
    p->prefixes->seen = room(p->d, sizeof seen);
    must(block_forward(&testing, &p->block, NULL, &p->x, &p->y, NULL, &error));
    must(p->d->ops->download(p->d->backend, seen, p->prefixes->seen, sizeof seen, &error));
    p->prefixes->seen = NULL;
    for (size_t i = 0; i < BATCH * ALL; i++) {
        sums[i % ALL] += (double)seen[i];
        sums[ALL + i % ALL] += (double)seen[i] * (double)seen[i];
    }
    must(gated_prefixes_describe(p->prefixes, TASK, sums, sums + ALL, BATCH, &error));
    size_t n;
    const float *values = p->prefixes->parameters->values;
    expect_columns(p, "image", "mean", values + part(p, GATED_MEAN, &n), 1);
    expect_columns(p, "image", "variance", values + part(p, GATED_VARIANCE, &n), 1);
}

static void check_tower(struct device *d, struct public_block *p, enum tower tower, const char *name)
{
    open_public(p, d, tower);
    place_drawn(p, tower);
    struct block_context context = context_of(p, tower, true);
    struct block_saved saved;
    must(block_forward(&context, &p->block, NULL, &p->x, &p->y, &saved, &error));
    expect_recorded(p, name, "out", p->y.data);
    must(block_backward(&context, &p->block, NULL, &saved, &p->dy, &p->dx, true, &error));
    expect_recorded(p, name, "dx", p->dx.data);
    expect_recorded(p, name, "dscores", gradient(p, GATED_SCORES));
    expect_recorded(p, name, "dvalues", gradient(p, GATED_VALUES));
    expect_columns(p, name, "dbias", gradient(p, GATED_BIAS), positions[tower]);
    expect_recorded(p, name, "dup", gradient(p, GATED_UP));
    expect_recorded(p, name, "dup_bias", gradient(p, GATED_UP_BIAS));
    if (tower == TOWER_IMAGE)
        expect_moments(p, &context);
    expect_weighted(p, tower, name, "kept", (const float[BATCH]){0.9f, 0.85f});
    expect_weighted(p, tower, name, "dropped", (const float[BATCH]){0.75f, 0.5f});
    prefixes_destroy(p->prefixes);
}

DEVICE_TEST(blocks_agree_with_the_public_code)
{
    struct public_block p = {.file = open_file(FIXTURES "/dpw.safetensors")};
    check_tower(d, &p, TOWER_IMAGE, "image");
    check_tower(d, &p, TOWER_TEXT, "text");
    safetensors_close(p.file);
}

/* Singular vectors have a sign of their own. */
static void expect_vectors(const struct public_block *p, const char *what, enum gated_tensor which)
{
    size_t n, all;
    const float *values = recorded(p, "start", what, &n);
    float *found = host_room(p->d, n * sizeof *found), *wanted = host_room(p->d, n * sizeof *wanted);
    size_t offset = part(p, which, &all);
    must(
        p->d->ops->download(p->d->backend, found, p->prefixes->parameters->values + offset, n * sizeof *found, &error));
    for (size_t r = 0; r < n; r += WIDTH) {
        double sum = 0;
        for (size_t k = r; k < r + WIDTH; k++)
            sum += (double)values[k] * (double)found[k];
        for (size_t k = r; k < r + WIDTH; k++)
            assert_true(fabs((double)found[k] - copysign(1, sum) * (double)values[k]) < 2e-4);
    }
}

DEVICE_TEST(a_task_starts_as_in_the_public_code)
{
    struct public_block p = {.file = open_file(FIXTURES "/dpw.safetensors")};
    struct threads *pool;
    must(threads_create(&pool, 1, &error));
    open_public(&p, d, TOWER_IMAGE);
    must(gated_prefixes_initialize(p.prefixes, &p.clip, TASK, pool, 3, &error));
    expect_vectors(&p, "scores", GATED_SCORES);
    expect_vectors(&p, "values", GATED_VALUES);
    expect_vectors(&p, "down", GATED_DOWN);
    size_t n, all, offset = part(&p, GATED_HEADS, &all);
    const float *fineness = recorded(&p, "start", "fineness", &n), *heads = recorded(&p, "start", "heads", &n);
    p.block.heads = 12;
    for (size_t i = 0; i < n; i++) {
        float found;
        must(gated_prefixes_choose_heads(p.prefixes, &p.clip, TASK, (double)fineness[i], &error));
        must(d->ops->download(d->backend, &found, p.prefixes->parameters->values + offset, sizeof found, &error));
        assert_true(found == fminf(heads[i], MOST));
    }
    must(gated_prefixes_choose_heads(p.prefixes, &p.clip, TASK, INFINITY, &error));
    prefixes_destroy(p.prefixes);
    threads_destroy(pool);
    safetensors_close(p.file);
}

TEST(heads_divide_the_width_and_have_singular_vectors)
{
    assert_int_equal(gated_heads(32, 8, 768), 32);
    assert_int_equal(gated_heads(256, 8, 768), 64);
    assert_int_equal(gated_heads(31, 8, 512), 16);
    assert_int_equal(gated_heads(32, 8, 72), 8);
    assert_int_equal(gated_heads(32, 40, 64), 1);
}

/* --- Both towers --- */

static const struct prefix_settings small_gates = {
    .tasks = 3, .length = {3, 2}, .blocks = {2, 2}, .heads = {4, 2}, .rank = 4, .positions = {10, 6}, .dropout = 0.25f};

static struct prefixes *add_prefixes(struct small *s)
{
    static const int32_t images[SMALL_IMAGES] = {1, -1, 1}, prompts[SMALL_PROMPTS] = {1, 1, 1, -1};
    struct prefixes *prefixes;
    struct threads *pool;
    must(threads_create(&pool, 1, &error));
    must(prefixes_create(&prefixes, s->d.backend, &s->d.memory, &small_dimensions, &small_gates, PARAMETERS_TRAINED,
                         &error));
    must(gated_prefixes_initialize(prefixes, s->clip, 1, pool, 7, &error));
    must(gated_prefixes_choose_heads(prefixes, s->clip, 1, 2, &error));
    must(prefixes_begin_task(prefixes, 1, &error));
    for (int t = 0; t < TOWERS; t++)
        s->attention[t] = prefixes_hooks(prefixes, (enum tower)t);
    s->router[TOWER_IMAGE] = to_device(&s->d, images, sizeof images);
    s->router[TOWER_TEXT] = to_device(&s->d, prompts, sizeof prompts);
    threads_destroy(pool);
    return prefixes;
}

/* Opens the gates, so that some heads are above 1 and others are not. */
static void open_gates(struct small *s, struct prefixes *prefixes)
{
    struct parameters *group = prefixes->parameters;
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        bool bias = strstr(p->name, "gate_bias") != NULL, up = strstr(p->name, "prefix_up") != NULL;
        float *values = host_room(&s->d, p->size * sizeof *values);
        for (size_t k = 0; k < p->size; k++)
            values[k] = (float)((k * 7 + i) % 11) / 5 - 1;
        if (bias || up)
            must(parameters_upload(group, p, values, &error));
    }
}

SMALL_TEST(samples_without_a_task_keep_their_bits, 2)
{
    size_t row = small_dimensions.embed * sizeof(float);
    const float *before = small_features(s, TOWER_IMAGE);
    struct prefixes *prefixes = add_prefixes(s);
    open_gates(s, prefixes);
    const float *after = small_features(s, TOWER_IMAGE);
    for (size_t i = 0; i < SMALL_IMAGES; i++) {
        size_t at = i * small_dimensions.embed;
        assert_int_equal(memcmp(before + at, after + at, row) == 0, i == 1);
    }
    small_expect_parts(s);
    prefixes_destroy(prefixes);
}

/* Of task 1 alone, with dropout in the deltas. */
TEST(gradients_match_differences)
{
    struct small s;
    for (enum parameters_mode mode = PARAMETERS_FROZEN; mode <= PARAMETERS_TRAINED; mode++) {
        small_open(&s, 2, mode, ACTIVATION_QUICK_GELU);
        struct prefixes *prefixes = add_prefixes(&s);
        struct parameters *group = prefixes->parameters, *towers = s.clip->parameters;
        open_gates(&s, prefixes);
        small_loss(&s, true);
        for (size_t i = 0; s.d.backend->precision == PRECISION_F32 && i < group->count; i++) {
            const struct parameter *p = &group->list[i];
            size_t n = p->size / p->shape[0], offset = p->offset + n;
            if (p->segments == small_gates.tasks)
                small_check_gradient(&s, p->name, parameters_write(group, offset, n), group->gradients + offset, n);
        }
        const struct parameter *in = parameters_find(towers, "visual.transformer.resblocks.1.ln_1.weight"),
                               *out = parameters_find(towers, "transformer.resblocks.0.attn.out_proj.weight");
        if (mode == PARAMETERS_TRAINED && s.d.backend->precision == PRECISION_F32) {
            small_check_gradient(&s, in->name, parameters_write(towers, in->offset, in->size),
                                 towers->gradients + in->offset, in->size);
            small_check_gradient(&s, out->name, parameters_write(towers, out->offset, out->size),
                                 towers->gradients + out->offset, out->size);
        }
        prefixes_destroy(prefixes);
        small_close(&s);
    }
}

SMALL_TEST(one_task_learns, 2)
{
    const struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.1};
    struct prefixes *prefixes = add_prefixes(s);
    struct parameters *group = prefixes->parameters;
    open_gates(s, prefixes);
    const float *before = small_values(s, group);
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
            assert_true((memcmp(after + p->offset + t * n, before + p->offset + t * n, n * sizeof *after) != 0) ==
                        (p->segments == small_gates.tasks && t == 1));
    }
    prefixes_destroy(prefixes);
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
    static const char last[] = "transformer.resblocks.1.attn.prefix_gate.2";
    struct prefixes *opened = NULL, *prefixes = add_prefixes(s);
    prefixes->settings.dropout = 0; /* of training alone */
    for (int again = 0; again < 2; again++) {
        group_draw(&s->d, prefixes->parameters, 0.5f);
        for (size_t t = 0; t < small_gates.tasks; t++)
            must(gated_prefixes_choose_heads(prefixes, s->clip, t, 1, &error));
        must(prefixes_save(prefixes, NULL, test_path(), &error));
        must(open_prefixes(s, &opened));
        assert_memory_equal(&opened->settings, &prefixes->settings, sizeof opened->settings);
        expect_same_group(&s->d, opened->parameters, prefixes->parameters);
    }
    edit_file(test_path(), &(struct file_edit){.drop = last}, NULL, 0);
    must_refuse(open_prefixes(s, &opened), ERROR_FORMAT, last, test_path());

    /* Heads of which there are too few or too many, or that do not divide the width. */
    const struct parameter *heads =
        parameters_find(prefixes->parameters, "visual.transformer.resblocks.1.attn.prefix_heads");
    const float wrong[][3] = {{1, 2, -1}, {1, 8, 2}, {3, 1, 1}, {1, 1, 1.5f}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        must(parameters_upload(prefixes->parameters, heads, wrong[i], &error));
        must(prefixes_save(prefixes, NULL, test_path(), &error));
        must_refuse(open_prefixes(s, &opened), ERROR_FORMAT, heads->name, "expected a divisor of 64 up to 4");
    }
    prefixes_destroy(opened);
    prefixes_destroy(prefixes);
}
