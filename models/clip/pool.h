/* Pooling of the last block's output to features, and back: the final norm of the class token's or end token's row, or the
 * mean of the patches after the norm; then the projection, where there is one. Or SigLIP's attention, which has none.
 *
 *     TRY(pool_forward(clip, encoding, pass, &features, error));                   // pass->last [B, last_positions, d]
 *     TRY(pool_backward(clip, encoding, pass, &dfeatures, &dlast, error));
 */
#pragma once

#include "models/clip.h"

/* Whether every position of the last block is needed. */
bool pool_is_whole(const struct clip *clip, enum tower tower);

/* features are taken from the encoding's arena. */
status pool_forward(struct clip *clip, const struct encoding *encoding, struct tower_pass *pass,
                    struct tensor *features, struct error *error);

/* Sets dx, like pass->last, and adds the weights' gradients. */
status pool_backward(struct clip *clip, const struct encoding *encoding, const struct tower_pass *pass,
                     const struct tensor *dfeatures, struct tensor *dx, struct error *error);

/* rows: 0, step, 2 · step, … [count] of the arena; one per sample */
status pool_rows(struct backend *backend, struct arena *arena, size_t count, size_t step, const int32_t **rows,
                 struct error *error);
