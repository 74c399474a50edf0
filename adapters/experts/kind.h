/* Kinds of experts. Each is two linear layers with an activation or nothing between them; a kind sets the activation, the
 * place in the block and the start values. A new one is a file in this folder, copied from lora.c, and a name here.
 *
 *     const struct expert_kind *kind;
 *     TRY(expert_kind_find(&kind, "ffn", error));
 *     settings.kind = kind;
 *     kind->settle(&settings);
 */
#pragma once

#include "adapters/adapter.h"

struct expert_kind {
    const char *name, *source; /* source: where it is published */
    const char *formula;
    enum block_place place;
    enum activation activation;      /* between the layers; dropout works with ACTIVATION_RELU alone */
    bool models_activation;          /* the activation of the model's MLPs instead */
    const char *parts[EXPERT_PARTS]; /* names of its tensors */
    struct refused_key refused[REFUSED_KEYS];
    /* Hidden units of an expert in a tower whose MLPs have `mlp` of them. */
    size_t (*hidden)(const struct adapter_settings *settings, size_t mlp);
    void (*settle)(struct adapter_settings *settings); /* sets the fields of the refused keys; NULL: nothing */
    status (*check)(const struct adapter_settings *settings, struct error *error);
    /* Sets the start values, from zeros. block: the model's, NULL where there is none. */
    status (*start)(struct adapter_tower *tower, size_t bank, const struct block *block, uint64_t seed,
                    struct error *error);
};

#define EXPERT_KINDS(X) X(lora) X(ffn)
#define DECLARE(name) extern const struct expert_kind expert_##name;
EXPERT_KINDS(DECLARE)
#undef DECLARE

status expert_kind_find(const struct expert_kind **kind, const char *name, struct error *error);
const struct expert_kind *expert_kind_at(size_t index);                            /* NULL past the last one */
const struct expert_kind *expert_kind_of(const struct adapter_settings *settings); /* lora by default */
