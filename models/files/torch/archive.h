/* The zip archive that torch.save and torch.jit.save write: entries below one folder, stored as they are.
 *
 *     struct torch_archive *archive;
 *     TRY(torch_archive_open(&archive, "ViT-B-32.pt", error));
 *     TRY(torch_archive_read(archive, "data.pkl", &bytes, error));          // <folder>/data.pkl, with its checksum compared
 *     torch_archive_close(archive);
 *
 * Nothing is decompressed: a compressed entry is refused, and the entries read must not be larger together than the file.
 */
#pragma once

#include "core/file.h"

struct torch_archive;

status torch_archive_open(struct torch_archive **archive, const char *path, struct error *error);

void torch_archive_close(struct torch_archive *archive); /* NULL is allowed */

const char *torch_archive_path(const struct torch_archive *archive);
uint64_t torch_archive_bytes(const struct torch_archive *archive); /* of the whole file */

/* The caller frees with bytes_free; the data is aligned for every type. ERROR_FORMAT names an entry that is absent, damaged,
 * compressed or encrypted. */
status torch_archive_read(struct torch_archive *archive, const char *name, struct bytes *bytes, struct error *error);
