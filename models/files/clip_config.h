/* What the shapes of a CLIP's weights do not say: how many heads its attention has, and the activation of its MLPs.
 *
 *     struct clip_config config;
 *     TRY(clip_config_find(&config, file, NULL, error));
 *     ... config.image_heads, config.text_heads, config.activation ...
 *
 * In this order: what the caller states; the metadata that clip_save writes; a configuration beside NAME.safetensors, which
 * is NAME.json, or else open_clip_config.json (open_clip's) and config.json (transformers' CLIPModel). Whatever is said must
 * agree, with the shapes of the weights too. Where nothing is said, the four vision transformers that OpenAI published have
 * heads of 64 columns, and QuickGELU if the file has the three sizes that OpenAI's own archives record: other weights of
 * these shapes have GELU. Nothing else is assumed: unknown is an error.
 */
#ifndef MTIL_MODELS_FILES_CLIP_CONFIG_H
#define MTIL_MODELS_FILES_CLIP_CONFIG_H

#include "models/backend.h"
#include "models/files/clip_file.h"
#include "models/files/safetensors.h"

struct clip_config {
    size_t image_heads, text_heads; /* 0: not said */
    enum activation activation;     /* ACTIVATION_NONE: not said */
};

/* What is known of the weights before they are read, and who says so, for messages: "model.heads". */
struct clip_stated {
    struct clip_config config;
    const char *heads_by, *activation_by;
};

/* stated: NULL is nothing. */
status clip_config_find(struct clip_config *config, const struct clip_file *file, const struct clip_stated *stated,
                        struct error *error);

/* The same for a file that is not open: what belongs to the identity of whatever is computed with it. */
status clip_config_of(struct clip_config *config, const char *path, const struct clip_stated *stated,
                      struct error *error);

/* Reads either configuration from size bytes of JSON, called path in messages, and compares it with the dimensions that
 * the weights have. *is_clip: whether it is of a CLIP at all. */
status clip_config_parse(struct clip_config *config, bool *is_clip, const struct clip_dimensions *dimensions,
                         const char *path, const char *bytes, size_t size, struct error *error);

/* "quick_gelu", "gelu"; ACTIVATION_NONE for other words. */
enum activation clip_activation_parse(const char *word);
const char *clip_activation_name(enum activation activation);

/* The configuration as metadata of a safetensors file; entries point into the struct. */
enum { CLIP_METADATA = 3 };
struct clip_metadata {
    char image_heads[24], text_heads[24];
    struct safetensors_metadata entries[CLIP_METADATA];
};
void clip_metadata_fill(struct clip_metadata *metadata, const struct clip_config *config);

#endif
