/* Learned tokens among those of a sample (struct embedding_hook of models/clip.h).
 *
 *     TRY(learned_insert(hook, &context, &x, &y, error));        // x [B, L, d] → y [B, L + count, d]
 *     TRY(learned_take(hook, &context, &dy, &dx, error));        // and back: dx [B, L, d]
 */
#pragma once

#include "models/clip.h"

/* y: the first token of a sample, those of the hook, the others. */
status learned_insert(const struct embedding_hook *hook, const struct block_context *context, const struct tensor *x,
                      const struct tensor *y, struct error *error);

/* x [B, L, d] += position [L, d] */
status learned_add_positions(const struct block_context *context, float *position, const struct tensor *x,
                             struct error *error);

/* The gradient of learned_insert: that of the hook's tokens goes to its backward, if they are trained; dx is set. */
status learned_take(const struct embedding_hook *hook, const struct block_context *context, const struct tensor *dy,
                    const struct tensor *dx, struct error *error);
