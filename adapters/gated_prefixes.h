/* Prefixes with a gate per token (DPW: Jang et al., "Enhancing Continual Learning of Vision-Language Models via Dynamic Prefix
 * Weighting", CVPR 2026, arXiv 2604.18075), of struct prefixes: in a block, a head's values of a task are weighed by sigmoids of
 * products of ln_1's output, and a low-rank delta by what of their sum is above 1 (struct gated_prefix). All samples of a pass
 * have the same task.
 *
 *     struct prefix_settings settings = {.tasks = 11, .length = {8, 8}, .blocks = {12, 12}, .heads = {32, 32}, .rank = 64,
 *                                        .positions = {197, 77}, .dropout = 0.1f};
 *     TRY(prefixes_create(&prefixes, backend, &model_arena, &dimensions, &settings, PARAMETERS_TRAINED, error));
 *     TRY(gated_prefixes_initialize(prefixes, clip, task, pool, seed, error));
 *     TRY(gated_prefixes_choose_heads(prefixes, clip, task, fineness, error));
 *     TRY(prefixes_begin_task(prefixes, task, error));
 */
#pragma once

#include "adapters/prefixes.h"
#include "core/threads.h"

/* The most heads of a tower, at most `most`: a power of two that divides the width and has as many singular vectors. */
size_t gated_heads(size_t most, size_t length, size_t width);

/* The values of a task, from the singular vectors of the block's weights as the public code has them: scores of query · keyᵀ, values and
 * down of value. The bias is −4 in the image tower and −2 in the text tower; up is N(0, 0.02²) with RNG_INIT, the same one for all
 * tasks. Those of a task that was not initialized are 0, and add nothing. */
status gated_prefixes_initialize(struct prefixes *prefixes, const struct clip *clip, size_t task, struct threads *pool,
                                 uint64_t seed, struct error *error);

/* The heads of a task: `fineness` times those of the block's attention, a power of two. */
status gated_prefixes_choose_heads(struct prefixes *prefixes, const struct clip *clip, size_t task, double fineness,
                                   struct error *error);

/* From sums and sums of squares of what `seen` received over n images, each [image blocks, heads · length]. */
status gated_prefixes_describe(struct prefixes *prefixes, size_t task, const double *sums, const double *squares,
                               size_t n, struct error *error);

/* For prefixes.c: declares the tensors of a layer and sets its hook; heads, rank and positions of a file; whether the heads in use that
 * were read from it are possible. */
status gated_layer_declare(struct prefix_layer *layer, size_t width, struct attention_hook *hook, struct error *error);
status gated_settings_read(const struct safetensors *file, enum tower tower, struct prefix_settings *settings,
                           struct error *error);
status gated_heads_check(const struct prefixes *prefixes, const struct safetensors *file, struct error *error);
