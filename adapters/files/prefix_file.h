/* Prefixes in a safetensors file: "visual.transformer.resblocks.3.attn.prefix_pool.0" [2, length, width], the keys and values of task
 * 0, text without "visual.".
 *
 *     TRY(prefixes_save(prefixes, &extra, "adapters.safetensors", error));
 *     if (prefix_file_is(file))
 *         TRY(prefixes_open(&prefixes, clip, &arena, file, error));
 */
#pragma once

#include "adapters/files/group_file.h"
#include "adapters/prefixes.h"

/* Of all tasks. A value that is not finite is an error, and nothing is written. */
status prefixes_save(const struct prefixes *prefixes, const struct group_extra *extra, const char *path,
                     struct error *error);

bool prefix_file_is(const struct safetensors *file);

/* For inference; tasks, blocks and lengths are those of the file. Prefixes that are there already, of the same sizes, get its values;
 * NULL: new ones. After a failure the caller destroys what is there. */
status prefixes_open(struct prefixes **prefixes, const struct clip *clip, struct arena *arena,
                     const struct safetensors *file, struct error *error);
