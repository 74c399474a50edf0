/* A vision transformer for classification (Dosovitskiy et al. 2021): a struct clip with an image tower alone and without a
 * projection. It is used and destroyed through clip.h; features are [B, width].
 *
 *     struct clip *vit;
 *     struct vit_settings small = {.resolution = 32, .patch = 4, .width = 384, .hidden = 1536, .heads = 6, .blocks = 12,
 *                                  .activation = ACTIVATION_GELU};
 *     TRY(vit_create(&vit, backend, &arena, &small, PARAMETERS_TRAINED, error));
 *     TRY(vit_initialize(vit, seed, error));
 *     TRY(clip_encode_images(vit, &encoding, &batch, &pass, &features, error));     // then models/class_head.h
 *     TRY(clip_encode_backward(vit, &encoding, &pass, &dfeatures, error));
 *     TRY(vit_content_take(&content, vit, head, VIT_TIMM, "vit.safetensors", error));  // for safetensors_write
 *     clip_destroy(vit);
 */
#pragma once

#include "models/class_head.h"
#include "models/clip.h"
#include "models/files/safetensors.h"

struct vit_settings {
    size_t resolution, patch, width, hidden, heads, blocks; /* hidden: units of the MLPs */
    enum activation activation;
    bool ln_pre; /* a norm before the blocks and no bias of the patches, as CLIP; otherwise the bias and no norm */
    enum pool pool;
    enum pixels pixels; /* how images are normalised; PIXELS_UNSTATED: as CLIP's */
    float epsilon;      /* of the norms; 0: 1e-5 */
    /* WideNet (Xue et al. 2022): number of runs of equal length into which the blocks are cut. The blocks of a run share one
     * attention and one MLP; 0: each block has its own. Norms are each block's own unless share_norms. */
    size_t share_groups;
    bool share_norms;
};

/* Takes memory for all weights (zero) from the arena. All are governed by CLIP_FLAG_IMAGE (the group has CLIP's other flags,
 * too) and have OpenAI's names; weights that blocks share have the number of the first block. ERROR_ARGUMENT for sizes that
 * do not fit together. */
status vit_create(struct clip **vit, struct backend *backend, struct arena *arena, const struct vit_settings *settings,
                  enum parameters_mode mode, struct error *error);

/* Standard deviation of the start values of matrices. */
#define VIT_START_DEVIATION 0.02f

/* Random weights as timm starts them (its init_weights_vit_timm): matrices and positions normal with standard deviation
 * 0.02, the class token 1e-6, patches uniform in ± 1/√(their values), gains 1, biases 0. Drawn with RNG_INIT. */
status vit_initialize(struct clip *vit, uint64_t seed, struct error *error);

/* The settings of a CLIP's image tower (or of another vit), pooled as it is, and its weights: every tensor of the tower but
 * the projection. The vit's backend may be another one. ERROR_ARGUMENT where it was not created with those settings; pool may
 * differ, and resolution, for which embedded positions are interpolated. */
struct vit_settings vit_settings_of(const struct clip *clip);
status vit_copy_image_tower(struct clip *vit, const struct clip *clip, struct error *error);

/* The first blocks of the image tower: whether a tensor of OpenAI's name is of the embedding or of one of them (blocks 0: of neither),
 * and ERROR_ARGUMENT where there are not so many, or blocks behind them share their weights. key: of the number, for messages. */
bool clip_is_first(const char *name, size_t blocks);
status clip_check_first(const struct clip *clip, size_t blocks, const char *key, struct error *error);

/* Bicubic interpolation of [old, old, width] to [side, side, width]. */
void vit_resize_grid(const float *from, size_t old, float *to, size_t side, size_t width);

/* Settings that a file does not state, and where the caller has them from, for messages ("model.heads"); 0 and
 * ACTIVATION_NONE: not stated. */
struct vit_stated {
    size_t heads;
    enum activation activation;
    const char *by;
    bool
        experts; /* the caller reads the experts that replace MLPs, which stay zero; otherwise such files are refused */
};

/* The facts that a file's names, shapes and metadata state. */
struct vit_file {
    struct vit_settings settings;
    bool states_pool;  /* it states how its features are pooled; files of other programs do not */
    size_t classes;    /* of its head; 0: it has none */
    bool experts;      /* it holds experts in place of MLPs (adapters/README.md) */
    uint64_t replaced; /* with experts: bits of the blocks without an MLP */
};

/* Sets *is_vit to whether the file has the names that vit_load reads; any other file is no error. */
status vit_file_look(struct vit_file *found, bool *is_vit, const char *path, const struct vit_stated *stated,
                     struct error *error);

/* Reads a model under the names of timm's VisionTransformer or Hugging Face's ViT; vit_load_head reads its head. Files of
 * vit_content state all settings. Files of other programs do not: the caller must state heads and activation, and the class token is
 * pooled. ε of the norms is then the program's, layer_norm_eps of config.json beside it, else 1e-6 (timm) or 1e-12 (Hugging Face), and
 * images are normalised as a configuration beside the file says (clip_config.h), else by 0.5, the default of both; with ln_pre the file
 * is timm's form of a CLIP's tower, and both are CLIP's. */
status vit_load(struct clip **vit, struct backend *backend, struct arena *arena, const char *path,
                enum parameters_mode mode, const struct vit_stated *stated, struct error *error);
status vit_load_head(struct linear_head **head, struct backend *backend, struct arena *arena, const char *path,
                     enum parameters_mode mode, struct error *error);

/* The content of a file of the weights, and of the head unless it is NULL, for other programs; path: for messages; blocks that
 * share weights have copies, and MLPs that are set apart (clip_replace_mlps) are left out. VIT_HUGGINGFACE has no name for
 * ln_pre: ERROR_ARGUMENT. A weight that is not finite is an error. Call vit_content_free after an error, too. */
enum { VIT_METADATA = 8 };
struct vit_content {
    struct safetensor *tensors;
    size_t tensor_count;
    struct safetensors_metadata metadata[VIT_METADATA];
    char heads[24], groups[24], epsilon[24]; /* of the metadata */
    struct clip_tensor *names;               /* of the tensors */
    float *values[2];                        /* of the vit, of the head */
};
status vit_content_take(struct vit_content *content, const struct clip *vit, const struct linear_head *head,
                        enum clip_naming naming, const char *path, struct error *error);
void vit_content_free(struct vit_content *content);
