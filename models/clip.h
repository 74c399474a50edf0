/* CLIP (Radford et al. 2021) and SigLIP (Zhai et al. 2023): an image tower and a text tower, forward and backward.
 *
 *     struct clip *clip;
 *     TRY(clip_load(&clip, backend, &arena, "ViT-B-16.safetensors", PARAMETERS_FROZEN, NULL, error));
 *     struct encoding encoding = {.arena = &step_arena};                      // inference, no adapters
 *     struct tower_pass pass;
 *     struct tensor features;
 *     TRY(clip_encode_images(clip, &encoding, &images, &pass, &features, error));      // [B, embed], not normalised
 *     TRY(clip_encode_texts(clip, &encoding, &texts, &pass, &features, error));
 *     clip_destroy(clip);
 */
#pragma once

#include "core/scope.h"
#include "models/block.h"
#include "models/files/clip_config.h"

/* Update flags of the group: each tower may be trained without the other. CLIP_FLAG_APART governs logit_scale, and MLPs
 * that clip_replace_mlps has set apart. */
enum clip_flag { CLIP_FLAG_IMAGE, CLIP_FLAG_TEXT, CLIP_FLAG_APART, CLIP_FLAGS };

/* An image's features, after the final norm: the class token's row, or the mean of the patches' rows; or, in SigLIP, a learned
 * query's attention over the patches and an MLP (clip/pool.c). */
enum pool { POOL_CLASS_TOKEN, POOL_MEAN_PATCHES, POOL_ATTENTION };

struct clip {
    struct backend *backend;
    struct clip_dimensions dimensions; /* embed 0: no projection; text_blocks 0: no text tower (vit.h) */
    enum activation activation;
    enum pixels pixels;            /* how images are normalised */
    float epsilon;                 /* of the norms: 1e-5 in CLIP */
    struct parameters *parameters; /* all tensors under OpenAI's names */
    enum pool pool;                /* CLIP: the class token */
    size_t run;       /* consecutive blocks of the image tower that share attention and MLP: 1 in CLIP (vit.h) */
    bool share_norms; /* and their norms */
    /* class_embedding: value NULL in SigLIP, whose positions are the patches */
    struct weight conv1, class_embedding, image_position, token_embedding, text_position, logit_scale;
    struct weight patch_bias; /* of conv1; value NULL: none, as in CLIP */
    /* SigLIP's: a query [width], the attention and MLP that it goes through (ln_1 unused), the bias of the text tower's
     * projection [embed], and that of the logits, for the sigmoid loss alone: it changes neither ranks nor a softmax. */
    struct weight probe, text_bias, logit_bias;
    struct block attention_pool;
    struct layer_norm_weights ln_pre; /* gain.value NULL: no norm before the blocks (vit.h) */
    struct {
        struct block *blocks;
        size_t count, width;
        struct layer_norm_weights ln_final; /* ln_post of the image tower */
        struct weight projection;           /* [width, embed]; value NULL: features are the pooled rows, [B, width] */
    } towers[TOWERS];
};

/* Takes memory for all weights (zero) from the arena. activation: QuickGELU, or GELU for weights that need it. clip_load
 * finds heads and activation as clip_config.h says; stated: those that the caller knows; NULL: none. */
status clip_create(struct clip **clip, struct backend *backend, struct arena *arena,
                   const struct clip_dimensions *dimensions, enum parameters_mode mode, enum activation activation,
                   struct error *error);
status clip_load(struct clip **clip, struct backend *backend, struct arena *arena, const char *path,
                 enum parameters_mode mode, const struct clip_stated *stated, struct error *error);
void clip_destroy(struct clip *clip); /* NULL is allowed */
SCOPED_POINTER(struct clip, clip_destroy)

/* The common part of clip_create and vit_create: a struct clip of the given form with zero weights. */
struct clip_plan {
    struct clip_dimensions dimensions; /* text_blocks 0: no text tower; embed 0: no projection */
    enum activation activation;
    enum pixels pixels; /* PIXELS_UNSTATED: CLIP's */
    float epsilon;      /* of the norms; 0: 1e-5 */
    enum pool pool;
    size_t run; /* of blocks that share, as in struct clip */
    bool share_norms;
};
status clip_build(struct clip **clip, struct backend *backend, struct arena *arena, const struct clip_plan *plan,
                  enum parameters_mode mode, struct error *error);

/* The block whose tensor a block of the image tower uses: the first of its run, or itself (vit.h). */
size_t clip_owner(const struct clip *clip, const struct clip_tensor *tensor);

/* Reads the values again, from a file of the same dimensions, for which neither its metadata nor a configuration beside
 * it names other heads or another activation. */
status clip_reload(struct clip *clip, const char *path, struct error *error);

/* Sets apart the MLPs that hooks [blocks of the tower] replace wherever they are used. Experts start from their values, and
 * nothing else reads them; they are neither updated nor written to files. NULL: none. */
status clip_replace_mlps(struct clip *clip, enum tower tower, const struct block_hook *hooks, struct error *error);

/* Writes all weights under OpenAI's names, with heads and activation as metadata. A weight that is not finite is an
 * error, and nothing is written. */
status clip_save(const struct clip *clip, const char *path, struct error *error);

/* The settings that the shapes of its weights do not show. */
struct clip_config clip_config_used(const struct clip *clip);

status clip_logit_scale(const struct clip *clip, float *exponential, struct error *error); /* exp(logit_scale) */

/* The identity of a CLIP: a digest of all its weights as used in the computation and of clip_config_used. Files with the same weights
 * under other names or in another precision have the same digest. */
#define CLIP_DIGEST_SIZE 17 /* 64 bits (XXH3) in hexadecimal, and a NUL */
status clip_digest(const struct clip *clip, char digest[CLIP_DIGEST_SIZE], struct error *error);

/* Prompts on the device, with as many positions as the longest needs. */
struct texts {
    size_t count, positions;
    int32_t *tokens; /* [C, context] */
    /* [C, 2] of C · positions: the start token, which routes, and the end token, which becomes the features */
    int32_t *last_rows;
    int32_t *end_of_two; /* [C] the end token's row among last_rows */
    int32_t *end_rows;   /* [C] the end token's row among C · positions */
    int32_t *lengths;    /* [C] tokens of a prompt, the end token included */
};
status texts_create(struct texts *texts, const struct clip *clip, struct arena *arena, const int32_t *tokens,
                    size_t count, struct error *error);

/* Settings of an encoding. Zero-initialised: inference without adapters. */
struct encoding {
    struct arena *arena; /* of the step */
    bool training;
    const struct block_hook *hooks; /* [blocks of the tower], an entry without `forward` is none; NULL: none at all */
    const int32_t *router;          /* device [B]; NULL: no hooks either */
    const struct attention_hook *attention; /* likewise, by block */
    const struct step_state *state;         /* device */
    size_t first;                           /* number of the first sample in the whole batch, where GPUs share one */
    float dropout;                          /* of the tower, in training (block.h) */
    bool whole; /* compute every row of the last block, not only those that the features need */
};

enum { CLIP_BLOCKS_MOST = 64 }; /* a tower's; the largest published CLIP has 48 */

/* The values that attention pooling keeps (clip/pool.c): the patches after the final norm [B, L, d]; query, key and
 * value [B, L, 3d], a sample's query in its first row; the query before its projection, once per sample [B, 1, d];
 * and per sample the attention, out_proj's output, the MLP's hidden units and the norm between these. */
struct pool_saved {
    struct tensor normal, qkv, probes, attended, a, hidden, a_normal, a_statistics;
    const int32_t *rows; /* [B] the first of every sample */
    float *lse;
};

/* The values that a forward pass in training keeps; the tensors are in the step's arena. */
struct tower_pass {
    enum tower tower;
    size_t batch, positions;
    const int32_t *last_rows; /* of the last block's input: the rows that it computes; NULL: all */
    size_t last_positions;    /* rows per sample of the last block's output */
    const int32_t *pool_rows; /* of its output: the row per sample that becomes the features */
    const int32_t *lengths;   /* of the samples, see struct block_context */
    struct tensor embedded;   /* image: before ln_pre */
    float *pre_statistics, *final_statistics;
    struct block_saved blocks[CLIP_BLOCKS_MOST];
    struct pool_saved attention;
    struct tensor last, pooled, normal; /* the last block's output [B, last_positions, d]; the pooled rows before the
                                         * final norm (of the class token alone) and after it */
    /* inputs, for the gradients of the embeddings */
    const struct texts *texts;
    size_t patch_count; /* per image */
    struct tensor patches;
};

/* images: u8 [B, R, R, 3] pixels, or f32 [B, 3, R, R] normalised. features [B, embed] ([B, width] without a projection) taken
 * from the arena. */
status clip_encode_images(struct clip *clip, const struct encoding *encoding, const struct tensor *images,
                          struct tower_pass *pass, struct tensor *features, struct error *error);
status clip_encode_texts(struct clip *clip, const struct encoding *encoding, const struct texts *texts,
                         struct tower_pass *pass, struct tensor *features, struct error *error);

/* Gradients of everything trained, from dfeatures, like features. */
status clip_encode_backward(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                            const struct tensor *dfeatures, struct error *error);

/* The mean over the patch tokens of the last block's output after ln_post: [B, width], from an inference pass with
 * `whole`. */
status clip_mean_patches(struct clip *clip, struct arena *arena, const struct tower_pass *pass, struct tensor *means,
                         struct error *error);
