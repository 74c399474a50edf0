/* Low-rank deltas in a safetensors file: "visual.transformer.resblocks.3.query.delta_a.0" [rank, in] and "….delta_b.0" [rank, out]
 * of task 0, magnitudes where there are any ("….delta_magnitude.0" [1]), text without "visual.".
 *
 *     TRY(deltas_save(deltas, &extra, "adapters.safetensors", error));
 *     if (delta_file_is(file))
 *         TRY(deltas_open(&deltas, clip, &arena, file, error));            // computes with the bits of the run that saved it
 */
#pragma once

#include "adapters/deltas.h"
#include "adapters/files/group_file.h"

/* The tasks up to the one in use. A value that is not finite is an error, and nothing is written. */
status deltas_save(const struct deltas *deltas, const struct group_extra *extra, const char *path, struct error *error);

bool delta_file_is(const struct safetensors *file);

/* For inference, with what is merged and what is in use as in the run. */
status deltas_open(struct deltas **deltas, struct clip *clip, struct arena *arena, const struct safetensors *file,
                   struct error *error);
