/* Inside the cache: one file of decoded images, of a split under one transform.
 *
 *     struct cache_file file;
 *     if (cache_file_open(&file, path, &label, error) == OK) …                  // it is whole and up to date
 *     if (cache_file_find(&file, item, &image) == CACHE_FOUND) …              // the caller frees the image
 *     cache_file_close(&file);
 *
 *     struct cache_writer writer;
 *     TRY(cache_writer_open(&writer, path, &label, count, room, error));       // ERROR_BUSY: somebody else writes it
 *     TRY(cache_writer_add(&writer, item, &image, error));                     // from any thread, in any order
 *     TRY(cache_writer_finish(&writer, error));                                // under its name from here on
 *
 * A header that says what it was made from, an index, then pixels. Nothing that a file claims is believed: its size,
 * header and index are checked when it is opened, and every image's checksum before it is first used. So no write has
 * to wait for the disk. Files are read by the kind of machine that wrote them.
 */
#ifndef MTIL_DATASETS_CACHE_CACHE_FILE_H
#define MTIL_DATASETS_CACHE_CACHE_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/file.h"
#include "datasets/dataset.h"

#define CACHE_FILE_ENDING ".pixels"
#define CACHE_FILE_UNFINISHED ".new" /* after the ending, while it is written */

/* What a file was made from, the rest zeros: when any of it differs, the file is of no use. */
struct cache_label {
    char dataset[64], root[4096];
    uint32_t split, resolution;    /* resolution 0: whole images */
    char content[DIGEST_SIZE + 3]; /* dataset_identity; no padding, because labels are compared by their bytes */
    char pixels[64];               /* image_version */
};

/* An image in the file. */
struct cache_entry {
    uint64_t offset; /* 0: absent */
    uint32_t width, height, checksum, unused;
};

struct cache_file {
    int file; /* meaningless without entries */
    size_t count;
    struct cache_entry *entries; /* NULL: not open */
    atomic_uchar *seen;          /* [count] whether an image's checksum was compared, and how it came out */
};

/* ERROR_IO: there is none; ERROR_FORMAT: damaged, or made from something else. */
status cache_file_open(struct cache_file *file, const char *path, const struct cache_label *label, struct error *error);

/* Only what the file says of itself, for lists: nothing but header and size is checked. */
status cache_file_describe(const char *path, struct cache_label *label, size_t *count, struct error *error);

enum cache_found { CACHE_ABSENT, CACHE_FOUND, CACHE_DAMAGED };

/* Of an image that was found the caller frees the pixels. A file that was shortened meanwhile is damaged. Safe from several
 * threads. */
enum cache_found cache_file_find(struct cache_file *file, size_t item, struct image *image);
/* The same into the caller's memory, where the image's size is known. */
enum cache_found cache_file_read(struct cache_file *file, size_t item, uint8_t *pixels);
void cache_file_close(struct cache_file *file); /* of zeros is allowed */

struct cache_writer {
    int file; /* −1: not open. Locked as long as it is */
    char *path, *temporary;
    struct cache_label label;
    size_t count;
    struct cache_entry *entries;
    uint64_t room; /* bytes that the file may take */
    atomic_ullong used;
};

/* Fails with ERROR_BUSY while another process writes the same file. What it left unfinished is written over. */
status cache_writer_open(struct cache_writer *writer, const char *path, const struct cache_label *label, size_t count,
                         uint64_t room, struct error *error);

/* An item that is not added is absent. ERROR_IO: the disk or the room is full. */
status cache_writer_add(struct cache_writer *writer, size_t item, const struct image *image, struct error *error);
status cache_writer_finish(struct cache_writer *writer, struct error *error); /* closes it, also when it fails */
void cache_writer_abandon(struct cache_writer *writer);                       /* harmless after finish */

#endif
