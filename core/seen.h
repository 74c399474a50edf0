/* Stores facts that were read from files, so that no program reads an unchanged file twice: SQLite's file seen.db in
 * a cache folder.
 *
 *     struct seen *seen;
 *     const struct seen_place place = {.kind = "dtd", .root = "/data/dtd", .version = image_version()};
 *     if (seen_open(&seen, folder, &place, &problem) != OK) …          // say so; nothing is known, and the file is made anew
 *     if (!seen_find(seen, "images/a.jpg", &stamp, &found, sizeof found)) …                               // read the file
 *     TRY(seen_write(seen, &(struct seen_record){"images/a.jpg", stamp, &found, sizeof found}, 1, error));
 *     seen_close(seen);
 *
 * A record is used only if its stamp and its checksum are right, so the file need not be synced: damage by a crash or
 * by another program costs time, but never gives a wrong record. Records are read by the kind of machine that wrote
 * them. Processes share the file.
 */
#pragma once

#include <stddef.h>

#include "core/file.h"

#define SEEN_FILE "seen.db"

/* Records of another version are not found, and are replaced at the next write. */
struct seen_place {
    const char *kind, *root, *version; /* a dataset or "digest"; its folder or file; version of the reader */
};

struct seen_record {
    const char *name; /* below the root */
    struct file_stamp stamp;
    const void *found;
    size_t size;
};

struct seen;

/* folder NULL: nothing is kept. The caller closes seen, which can be used after a failure, too: ERROR_FORMAT for a damaged
 * file, ERROR_IO for one that cannot be read. */
status seen_open(struct seen **seen, const char *folder, const struct seen_place *place, struct error *error);
void seen_close(struct seen *seen); /* NULL is allowed */

/* Finds the facts of a file with this stamp; false: unknown. Safe from several threads. */
bool seen_find(struct seen *seen, const char *name, const struct file_stamp *stamp, void *found, size_t size);

/* Adds records, and replaces those of the same names, all or none. */
status seen_write(struct seen *seen, const struct seen_record *records, size_t count, struct error *error);

/* The places of a folder. */
struct seen_listed {
    char *kind, *root; /* owned */
    int64_t records, bytes;
};
struct seen_listing {
    struct seen_listed *places;
    size_t count;
};
/* The caller frees; without a file there are none. */
status seen_list(struct seen_listing *listing, const char *folder, struct error *error);
void seen_listing_free(struct seen_listing *listing);

/* Forgets the places of a root (NULL: all, with the file). */
status seen_forget(const char *folder, const char *root, struct error *error);
