/* A ViT and its head through files under timm's and Hugging Face's names, and files that are none. */
#include <stdio.h>
#include <string.h>

#include "models/vit.h"
#include "tests/datasets/scratch.h"
#include "tests/models/clip/groups.h"
#include "tests/models/files/tensor_set.h"
#include "tests/models/vit.h"

static const struct vit_settings plain = {
    .resolution = 8, .patch = 4, .width = 16, .hidden = 24, .heads = 2, .blocks = 2, .activation = ACTIVATION_GELU};

/* Those of the test that runs. */
static struct {
    struct scratch scratch;
    struct device d;
    struct clip *vit;
    struct linear_head *head;
    char path[300];
} f;

static int close_files(void **state)
{
    if (f.vit != NULL) {
        clip_destroy(f.vit);
        linear_head_destroy(f.head);
        device_close(&f.d);
        scratch_remove(&f.scratch);
        f.vit = NULL;
    }
    return 0;
}

/* In place of those that were open. */
static void open_files(const struct vit_settings *settings)
{
    close_files(NULL);
    scratch_create(&f.scratch);
    device_open(&f.d, 1);
    must(vit_create(&f.vit, f.d.backend, &f.d.memory, settings, PARAMETERS_FROZEN, &error));
    must(linear_head_create(&f.head, f.d.backend, &f.d.memory, settings->width, 3, PARAMETERS_FROZEN, &error));
    group_draw(&f.d, f.vit->parameters, 1.0f);
    group_draw(&f.d, f.head->parameters, 1.0f);
    snprintf(f.path, sizeof f.path, "%s/vit.safetensors", f.scratch.path);
}

static status load(struct clip **vit, const struct vit_stated *stated)
{
    return vit_load(vit, f.d.backend, &f.d.memory, f.path, PARAMETERS_FROZEN, stated, &error);
}

static struct vit_file look(const struct vit_stated *said)
{
    struct vit_file found;
    bool is_vit;
    must(vit_file_look(&found, &is_vit, f.path, said, &error));
    assert_true(is_vit);
    return found;
}

static void through_a_file(const struct vit_settings *settings, enum clip_naming names)
{
    struct clip *vit;
    struct linear_head *head;
    open_files(settings);
    must(vit_save(f.vit, f.head, names, f.path, &error));
    assert_true(look(NULL).states_pool);
    must(load(&vit, NULL));
    must(vit_load_head(&head, f.d.backend, &f.d.memory, f.path, PARAMETERS_FROZEN, &error));
    struct vit_settings read = vit_settings_of(vit);
    assert_memory_equal(&read.resolution, &settings->resolution, 6 * sizeof read.resolution);
    assert_true(read.activation == settings->activation && read.ln_pre == settings->ln_pre &&
                read.pool == settings->pool && read.share_groups == settings->share_groups &&
                read.share_norms == settings->share_norms);
    expect_same_group(&f.d, vit->parameters, f.vit->parameters);
    expect_same_group(&f.d, head->parameters, f.head->parameters);
    clip_destroy(vit);
    linear_head_destroy(head);
}

TEST(what_is_written_is_read)
{
    struct vit_settings form = plain;
    through_a_file(&form, VIT_TIMM);
    through_a_file(&form, VIT_HUGGINGFACE);
    form.pool = POOL_MEAN_PATCHES;
    form.activation = ACTIVATION_QUICK_GELU;
    form.share_groups = 1;
    through_a_file(&form, VIT_HUGGINGFACE);
    form.share_norms = true;
    form.ln_pre = true;
    through_a_file(&form, VIT_TIMM);
}

static const char qkv[] = "visual.transformer.resblocks.1.attn.in_proj_weight",
                  qkv_bias[] = "visual.transformer.resblocks.1.attn.in_proj_bias",
                  hidden[] = "visual.transformer.resblocks.0.mlp.c_fc.weight";

TEST(others_find_their_names)
{
    static const struct {
        enum clip_naming names;
        const char *name;
        int rank;
        size_t shape[4];
        const char *own;
        size_t offset; /* in our tensor */
    } cases[] = {
        {VIT_TIMM, "cls_token", 3, {1, 1, 16}, "visual.class_embedding", 0},
        {VIT_TIMM, "pos_embed", 3, {1, 5, 16}, "visual.positional_embedding", 0},
        {VIT_TIMM, "patch_embed.proj.weight", 4, {16, 3, 4, 4}, "visual.conv1.weight", 0},
        {VIT_TIMM, "patch_embed.proj.bias", 1, {16}, "visual.conv1.bias", 0},
        {VIT_TIMM, "blocks.1.attn.qkv.weight", 2, {48, 16}, qkv, 0},
        {VIT_TIMM, "blocks.1.attn.qkv.bias", 1, {48}, qkv_bias, 0},
        {VIT_TIMM, "blocks.0.mlp.fc1.weight", 2, {24, 16}, hidden, 0},
        {VIT_TIMM, "norm.weight", 1, {16}, "visual.ln_post.weight", 0},
        {VIT_HUGGINGFACE, "vit.embeddings.cls_token", 3, {1, 1, 16}, "visual.class_embedding", 0},
        {VIT_HUGGINGFACE, "vit.embeddings.position_embeddings", 3, {1, 5, 16}, "visual.positional_embedding", 0},
        {VIT_HUGGINGFACE,
         "vit.embeddings.patch_embeddings.projection.weight",
         4,
         {16, 3, 4, 4},
         "visual.conv1.weight",
         0},
        {VIT_HUGGINGFACE, "vit.encoder.layer.1.attention.attention.query.weight", 2, {16, 16}, qkv, 0},
        {VIT_HUGGINGFACE, "vit.encoder.layer.1.attention.attention.key.weight", 2, {16, 16}, qkv, 16 * 16},
        {VIT_HUGGINGFACE, "vit.encoder.layer.1.attention.attention.value.bias", 1, {16}, qkv_bias, 2 * 16},
        {VIT_HUGGINGFACE, "vit.encoder.layer.0.intermediate.dense.weight", 2, {24, 16}, hidden, 0},
        {VIT_HUGGINGFACE, "vit.layernorm.bias", 1, {16}, "visual.ln_post.bias", 0},
    };
    open_files(&plain);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool timm = cases[i].names == VIT_TIMM;
        const struct safetensor *tensor;
        const struct parameter *p = parameters_find(f.vit->parameters, cases[i].own);
        must(vit_save(f.vit, timm ? f.head : NULL, cases[i].names, f.path, &error));
        struct safetensors *file = open_file(f.path);
        assert_int_equal(safetensors_count(file), timm ? 6 + 2 * 12 + 2 : 6 + 2 * 16);
        must(safetensors_expect(file, cases[i].name, SAFETENSOR_F32, cases[i].rank, cases[i].shape, &tensor, &error));
        size_t bytes = safetensor_elements(tensor) * sizeof(float);
        assert_memory_equal(tensor->data,
                            from_device(&f.d, f.vit->parameters->values + p->offset + cases[i].offset, bytes), bytes);
        safetensors_close(file);
    }
}

/* ---- files of others ---- */

static const struct vit_stated stated = {.heads = 2, .activation = ACTIVATION_GELU, .by = "model.heads"};
static const float zeros[16 * 16] = {0};

TEST(bare_models_of_hugging_face_are_read)
{
    const struct safetensor pooler = {
        .name = "pooler.dense.weight", .type = SAFETENSOR_F32, .rank = 2, .shape = {16, 16}, .data = zeros};
    struct clip *vit;
    open_files(&plain);
    must(vit_save(f.vit, NULL, VIT_HUGGINGFACE, f.path, &error));
    edit_file(f.path, &(struct file_edit){.strip = "vit.", .more = &pooler}, NULL, 0);
    must(load(&vit, &stated));
    expect_same_group(&f.d, vit->parameters, f.vit->parameters);
    assert_int_equal(vit_settings_of(vit).heads, 2);
    clip_destroy(vit);
}

#define REFUSED(said, ...) refused(said, (const char *const[]){__VA_ARGS__, NULL})
static void refused(const struct vit_stated *said, const char *const *words)
{
    struct clip *vit;
    check_refusal(load(&vit, said), ERROR_FORMAT, words);
    assert_null(vit);
    assert_non_null(strstr(error.message, "vit.safetensors"));
}

TEST(damaged_files_are_refused)
{
    const struct safetensor unknown = {
        .name = "fc_norm.weight", .type = SAFETENSOR_F32, .rank = 1, .shape = {16}, .data = zeros};
    const struct safetensor narrow = {
        .name = "blocks.1.norm2.weight", .type = SAFETENSOR_F32, .rank = 1, .shape = {8}, .data = zeros};
    const struct {
        struct file_edit change;
        const char *words[3];
    } cases[] = {
        {{.drop = "blocks.1.mlp.fc2.bias"}, {"'blocks.1.mlp.fc2.bias' is missing", "[16]"}},
        {{.drop = "pos_embed"}, {"'pos_embed'", "missing"}},
        {{.drop = "patch_embed.proj.weight"}, {"timm or Hugging Face's ViT", "31 tensors"}},
        {{.more = &unknown}, {"'fc_norm.weight'", "[16]"}},
        {{.drop = narrow.name, .more = &narrow}, {"'blocks.1.norm2.weight'", "expected shape [16], found [8]"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_files(&plain);
        must(vit_save(f.vit, f.head, VIT_TIMM, f.path, &error));
        edit_file(f.path, &cases[i].change, NULL, 0);
        refused(&stated, cases[i].words);
    }
}

TEST(what_is_not_stated_is_not_guessed)
{
    open_files(&plain);
    must(vit_save(f.vit, NULL, VIT_TIMM, f.path, &error));
    struct vit_stated other = stated;
    other.heads = 4;
    REFUSED(&other, "2 heads", "model.heads 4");
    other = stated;
    other.activation = ACTIVATION_QUICK_GELU;
    REFUSED(&other, "activation gelu", "quick_gelu");
    other.activation = ACTIVATION_GELU;
    edit_file(f.path, &(struct file_edit){0}, NULL, 0);
    other.heads = 3;
    struct clip *vit;
    must_refuse(load(&vit, &other), ERROR_ARGUMENT, "vit.safetensors: vit: expected a number of heads that divides");
    REFUSED(NULL, "number of heads and the activation");
    edit_file(f.path, &(struct file_edit){0}, &(struct safetensors_metadata){"pool", "first"}, 1);
    REFUSED(&stated, "'pool'", "'first'");
    struct linear_head *head;
    must_refuse(vit_load_head(&head, f.d.backend, &f.d.memory, f.path, PARAMETERS_FROZEN, &error), ERROR_FORMAT,
                "'head.weight'");
}

TEST(copies_of_shared_weights_must_be_equal)
{
    const struct safetensors_metadata metadata = {"share_groups", "1"};
    struct safetensor other = {
        .name = "blocks.1.norm1.weight", .type = SAFETENSOR_F32, .rank = 1, .shape = {16}, .data = zeros};
    struct vit_settings form = plain;
    form.share_groups = 1;
    open_files(&form);
    must(vit_save(f.vit, f.head, VIT_TIMM, f.path, &error));
    edit_file(f.path, &(struct file_edit){.drop = other.name, .more = &other}, &metadata, 1); /* not shared */
    struct clip *vit;
    must(load(&vit, &stated));
    clip_destroy(vit);
    other.name = "blocks.1.mlp.fc1.bias";
    other.shape[0] = 24;
    edit_file(f.path, &(struct file_edit){.drop = other.name, .more = &other}, &metadata, 1);
    REFUSED(&stated, "'blocks.1.mlp.fc1.bias'", "shares");
}

/* MLPs that are set apart are not written, and are only missed where no experts stand for them. */
TEST(experts_stand_for_an_mlp)
{
    static const float expert[24 * 16] = {0};
    const struct safetensor first = {.name = "visual.transformer.resblocks.1.adaptmlp_list.0.c_fc.weight",
                                     .type = SAFETENSOR_F32,
                                     .rank = 2,
                                     .shape = {24, 16},
                                     .data = expert};
    struct clip *vit;
    open_files(&plain);
    struct parameters *group = f.vit->parameters;
    for (size_t i = 0; i < group->count; i++)
        if (strstr(group->list[i].name, "resblocks.1.mlp.") != NULL)
            must(parameters_govern(group, &group->list[i], CLIP_FLAG_APART, &error));
    must(vit_save(f.vit, f.head, VIT_TIMM, f.path, &error));
    REFUSED(&stated, "'blocks.1.mlp.fc1.weight' is missing");
    edit_file(f.path, &(struct file_edit){.more = &first}, NULL, 0);
    REFUSED(&stated, "experts in place of MLPs", "adaptmlp_list.0.c_fc");
    struct vit_stated experts = stated;
    experts.experts = true;
    must(load(&vit, &experts));
    const struct parameter *mlp = parameters_find(group, "visual.transformer.resblocks.1.mlp.c_fc.weight");
    const float *read = from_device(&f.d, vit->parameters->values + mlp->offset, mlp->size * sizeof *read);
    for (size_t i = 0; i < mlp->size; i++)
        assert_true(read[i] == 0);
    const struct vit_file found = look(&experts);
    assert_true(found.experts && !found.states_pool && found.settings.epsilon == 1e-6f && found.replaced == 1 << 1 &&
                found.classes == 3 && found.settings.hidden == 24);
    edit_file(f.path, &(struct file_edit){.drop = "blocks.0.mlp.fc2.bias"}, NULL, 0);
    REFUSED(&experts, "'blocks.0.mlp.fc2.bias' is missing");
    clip_destroy(vit);
}

/* A file without our metadata is of another program; what it does not state stays with what is written of it. */
TEST(norms_and_pixels_are_those_of_their_program)
{
    static const struct {
        enum clip_naming names;
        bool ln_pre;
        float epsilon;
        enum pixels pixels;
        const char *file, *config; /* beside it */
    } cases[] = {
        {VIT_TIMM, false, 1e-6f, PIXELS_HALF, NULL, NULL},
        {VIT_TIMM, true, 1e-5f, PIXELS_CLIP, NULL, NULL},
        {VIT_HUGGINGFACE, false, 1e-12f, PIXELS_HALF, NULL, NULL},
        {VIT_TIMM, false, 1e-6f, PIXELS_IMAGENET, "config.json",
         "{\"pretrained_cfg\": {\"mean\": [0.485, 0.456, 0.406], \"std\": [0.229, 0.224, 0.225]}}"},
        {VIT_HUGGINGFACE, false, 1e-12f, PIXELS_IMAGENET, "preprocessor_config.json",
         "{\"image_mean\": [0.485, 0.456, 0.406], \"image_std\": [0.229, 0.224, 0.225]}"},
        {VIT_HUGGINGFACE, false, 1e-6f, PIXELS_HALF, "config.json", "{\"layer_norm_eps\": 1e-06}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vit_settings form = plain;
        struct clip *vit;
        form.ln_pre = cases[i].ln_pre;
        open_files(&form);
        must(vit_save(f.vit, f.head, cases[i].names, f.path, &error));
        edit_file(f.path, &(struct file_edit){0}, NULL, 0);
        if (cases[i].file != NULL)
            scratch_write_text(&f.scratch, cases[i].file, cases[i].config);
        const struct vit_settings found = look(&stated).settings;
        must(load(&vit, &stated));
        must(vit_save(vit, NULL, cases[i].names, f.path, &error));
        const struct vit_settings again = look(NULL).settings;
        assert_true(found.epsilon == cases[i].epsilon && found.pixels == cases[i].pixels);
        assert_true(again.epsilon == cases[i].epsilon && again.pixels == cases[i].pixels);
        assert_true(vit->epsilon == cases[i].epsilon &&
                    vit->towers[TOWER_IMAGE].blocks[1].ln_2.epsilon == vit->epsilon);
        clip_destroy(vit);
    }
}

TEST(what_no_file_can_hold_is_not_written)
{
    struct vit_settings form = plain;
    form.ln_pre = true;
    open_files(&form);
    must_refuse(vit_save(f.vit, f.head, VIT_HUGGINGFACE, f.path, &error), ERROR_ARGUMENT, "no norm before its blocks");
    const struct parameter *p = parameters_find(f.head->parameters, "head.bias");
    must(parameters_upload(f.head->parameters, p, (const float[]){0, 1.0f / 0.0f, 0}, &error));
    must_refuse(vit_save(f.vit, f.head, VIT_TIMM, f.path, &error), ERROR_FORMAT, "'head.bias' is not finite");
    assert_null(fopen(f.path, "rb"));
}

TEST_GROUP(NULL, close_files)
