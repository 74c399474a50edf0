/* A SigLIP through files under transformers' names, open_clip's and this program's, and what it has of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/files/safetensors.h"
#include "models/vit.h"
#include "tests/datasets/scratch.h"
#include "tests/models/small.h"

struct files {
    struct scratch scratch;
    struct small s;
    char path[300];
};

static void open_files(struct files *f)
{
    scratch_create(&f->scratch);
    small_open_siglip(&f->s, 1, PARAMETERS_FROZEN);
    snprintf(f->path, sizeof f->path, "%s/siglip.safetensors", f->scratch.path);
}

static void close_files(struct files *f)
{
    small_close(&f->s);
    scratch_remove(&f->scratch);
}

static float *transposed(const float *values, size_t rows, size_t columns)
{
    float *turned = malloc(rows * columns * sizeof *turned);
    assert_non_null(turned);
    for (size_t i = 0; i < rows * columns; i++)
        turned[i % columns * rows + i / columns] = values[i];
    return turned;
}

/* The small model under the names of others, with the leading ones that they have. */
static void write_named(struct files *f, enum clip_naming naming)
{
    static const char *const padded[] = {"probe", "latent", "pos_embed", "logit_scale", "logit_bias"};
    const struct clip *clip = f->s.clip;
    const struct parameters *group = clip->parameters;
    size_t count = 0, all = clip_tensors(&clip->dimensions);
    struct safetensor *tensors = calloc(CLIP_SOURCES * all, sizeof *tensors);
    struct clip_tensor *names = calloc(all, sizeof *names);
    float **turned = calloc(all, sizeof *turned);
    assert_true(tensors != NULL && names != NULL && turned != NULL);
    for (size_t i = 0; i < all; i++) {
        names[i] = clip_tensor_at(&clip->dimensions, naming, i);
        const struct clip_tensor *t = &names[i];
        const struct parameter *p = parameters_find(group, t->openai);
        assert_non_null(p);
        const float *values = from_device(&f->s.d, group->values + p->offset, p->size * sizeof *values);
        if (t->transposed)
            values = turned[i] = transposed(values, t->shape[0], t->shape[1]);
        for (size_t part = 0; part < t->parts; part++) {
            struct safetensor *out = &tensors[count++];
            *out = (struct safetensor){.name = t->names[part], .type = SAFETENSOR_F32, .data = values};
            size_t rows = t->parts > 1 ? t->rows[part] : t->rank > 0 ? t->shape[0] : 1;
            for (size_t k = 0; k < sizeof padded / sizeof *padded; k++)
                if (strstr(out->name, padded[k]) != NULL && naming != CLIP_OPENAI)
                    out->shape[out->rank++] = 1;
            for (int r = 0; r < t->rank; r++)
                out->shape[out->rank++] = t->transposed ? t->shape[1 - r] : r == 0 ? rows : t->shape[r];
            values += t->parts > 1 ? rows * (p->size / t->shape[0]) : 0;
        }
    }
    must(safetensors_write(f->path, tensors, count, NULL, 0, &error));
    for (size_t i = 0; i < all; i++)
        free(turned[i]);
    free(turned);
    free(names);
    free(tensors);
}

static void expect_same(struct files *f, const struct clip *read)
{
    const struct parameters *a = f->s.clip->parameters, *b = read->parameters;
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_string_equal(a->list[i].name, b->list[i].name);
        expect_floats(&f->s.d, a->list[i].name, b->values + b->list[i].offset,
                      from_device(&f->s.d, a->values + a->list[i].offset, a->list[i].size * sizeof(float)),
                      a->list[i].size);
    }
    assert_true(read->epsilon == 1e-6f && read->pixels == PIXELS_HALF && read->pool == POOL_ATTENTION);
    assert_true(read->activation == ACTIVATION_GELU_TANH && read->dimensions.pool_hidden == 96);
}

TEST(every_naming_is_read)
{
    const struct clip_stated stated = {.config = {.image_heads = 1, .text_heads = 2}, .heads_by = "the test"};
    for (enum clip_naming naming = CLIP_OPENAI; naming < VIT_TIMM; naming++) {
        struct files f;
        struct clip *clip;
        open_files(&f);
        write_named(&f, naming);
        must(clip_load(&clip, f.s.d.backend, &f.s.d.memory, f.path, PARAMETERS_FROZEN, &stated, &error));
        expect_same(&f, clip);
        clip_destroy(clip);
        close_files(&f);
    }
}

/* Names as they stand in published files, not as the table derives them. */
TEST(others_find_their_names)
{
    static const struct {
        enum clip_naming naming;
        const char *name;
        int rank;
        size_t shape[3];
    } cases[] = {
        {CLIP_HUGGINGFACE, "vision_model.head.probe", 2, {1, 64}},
        {CLIP_HUGGINGFACE, "vision_model.head.attention.in_proj_weight", 2, {192, 64}},
        {CLIP_HUGGINGFACE, "vision_model.encoder.layers.1.self_attn.k_proj.bias", 1, {64}},
        {CLIP_HUGGINGFACE, "text_model.head.weight", 2, {64, 128}},
        {CLIP_OPEN_CLIP, "visual.trunk.attn_pool.kv.weight", 2, {128, 64}},
        {CLIP_OPEN_CLIP, "visual.trunk.blocks.1.attn.qkv.weight", 2, {192, 64}},
        {CLIP_OPEN_CLIP, "text.transformer.resblocks.1.mlp.c_fc.weight", 2, {512, 128}},
        {CLIP_OPEN_CLIP, "text.text_projection.bias", 1, {64}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct files f;
        struct safetensors *file;
        const struct safetensor *found;
        open_files(&f);
        write_named(&f, cases[i].naming);
        must(safetensors_open(&file, f.path, &error));
        must(safetensors_expect(file, cases[i].name, SAFETENSOR_F32, cases[i].rank, cases[i].shape, &found, &error));
        safetensors_close(file);
        close_files(&f);
    }
}

TEST(what_is_saved_is_read)
{
    struct files f;
    struct clip *clip;
    open_files(&f);
    must(clip_save(f.s.clip, f.path, &error));
    must(clip_load(&clip, f.s.d.backend, &f.s.d.memory, f.path, PARAMETERS_FROZEN, NULL, &error));
    expect_same(&f, clip);
    must(clip_reload(clip, f.path, &error));
    clip_destroy(clip);
    close_files(&f);
}

TEST(heads_of_other_widths_are_not_guessed)
{
    struct files f;
    struct clip *clip;
    open_files(&f);
    write_named(&f, CLIP_HUGGINGFACE);
    assert_int_equal(clip_load(&clip, f.s.d.backend, &f.s.d.memory, f.path, PARAMETERS_FROZEN, NULL, &error),
                     ERROR_FORMAT);
    assert_non_null(strstr(error.message, "number of attention heads is unknown"));
    close_files(&f);
}

/* A ViT has a class token or the patches' mean, so it cannot take a SigLIP's tower. */
TEST(a_vit_refuses_its_tower)
{
    struct files f;
    struct clip *vit;
    open_files(&f);
    struct vit_settings settings = vit_settings_of(f.s.clip);
    settings.pool = POOL_CLASS_TOKEN;
    must(vit_create(&vit, f.s.d.backend, &f.s.d.memory, &settings, PARAMETERS_FROZEN, &error));
    assert_int_equal(vit_copy_image_tower(vit, f.s.clip, &error), ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "SigLIP"));
    clip_destroy(vit);
    close_files(&f);
}
