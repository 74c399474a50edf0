/* SigLIP's attention pooling (Zhai et al. 2023; the head of big_vision's ViT, after Lee et al., "Set Transformer", 2019): with x the
 * patches after the final norm and p a learned query,
 *
 *     a = out_proj(attention(p W_q, x W_k, x W_v));   features = a + mlp(ln_2(a))
 */
#pragma once

#include "models/clip.h"

/* Takes features [B, width] from the arena; pass->last is [B, L, width]. In training everything that the backward pass needs
 * stays in the arena. */
status attention_pool_forward(struct clip *clip, const struct encoding *encoding, struct tower_pass *pass,
                              struct tensor *features, struct error *error);

/* dx [B, L, width]: the gradient of pass->last. */
status attention_pool_backward(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                               const struct tensor *dfeatures, struct tensor *dx, struct error *error);
