/* The files of decoded images, one for a split under one transform, and the folder that they lie in.
 *
 *     struct cache_file file;
 *     if (cache_file_open(&file, path, &label, error) == OK) …                  // it is complete and up to date
 *     if (cache_file_find(&file, item, &image) == CACHE_FOUND) …              // the caller frees the image
 *     cache_file_close(&file);
 *
 *     struct cache_writer writer;
 *     TRY(cache_writer_open(&writer, path, &label, count, room, error));       // ERROR_BUSY: another process writes it
 *     TRY(cache_writer_add(&writer, item, &image, error));                     // from any thread, in any order
 *     TRY(cache_writer_finish(&writer, error));                                // renames it into place
 *
 *     char *folder = cache_folder_default();                             // "/home/ada/.cache/mtil"
 *     struct cache_listing listing;
 *     TRY(cache_folder_list(&listing, folder, error));
 *     for (size_t i = 0; i < listing.count; i++) … listing.files[i].bytes …
 *     cache_listing_free(&listing);
 *
 *     0                 struct cache_header, with a label of what it was made from, then zeros
 *     CACHE_HEADER      struct cache_entry [count]
 *     pixels_start      [height, width, 3] per image, in any order
 *
 * Nothing in a file is trusted: size, header and index are checked when it is opened, the checksum of an image whenever
 * it is read. So writers need not sync. Files are read by the kind of machine that wrote them.
 */
#pragma once

#include <stdatomic.h>
#include <time.h>

#include "core/file.h"
#include "datasets/dataset.h"

#define CACHE_FILE_ENDING ".pixels"
#define CACHE_FILE_UNFINISHED ".new" /* follows the extension while the file is written */

/* The origin of a file, padded with zeros; a file with another label is not used. */
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

#define CACHE_MAGIC "mtilpix2" /* the last character changes with the layout */

enum { CACHE_HEADER = 8192, CACHE_ALIGNMENT = 4096, CACHE_BYTE_ORDER = 0x01020304 };

struct cache_header {
    char magic[8];
    uint32_t byte_order, checksum; /* checksum: of the header, with 0 in this place */
    uint64_t size, count;          /* bytes of the whole file; number of images */
    uint32_t index_checksum, unused;
    struct cache_label label;
    uint32_t padding; /* up to a multiple of 8 */
};
_Static_assert(sizeof(struct cache_header) <= CACHE_HEADER, "the header has its place");
_Static_assert(sizeof(struct cache_header) == 40 + sizeof(struct cache_label) + sizeof(uint32_t), "without gaps");

uint32_t cache_checksum(const void *data, size_t size);
uint32_t cache_header_checksum(const struct cache_header *header);
uint64_t cache_pixels_start(uint64_t count);

struct cache_file {
    int file; /* meaningless without entries */
    size_t count;
    struct cache_entry *entries; /* NULL: not open */
};

/* ERROR_IO: there is none; ERROR_FORMAT: damaged, or made from something else. */
status cache_file_open(struct cache_file *file, const char *path, const struct cache_label *label, struct error *error);

enum cache_found { CACHE_ABSENT, CACHE_FOUND, CACHE_DAMAGED };

/* The caller frees the pixels of an image that was found. A truncated file counts as damaged. Safe from several
 * threads. */
enum cache_found cache_file_find(const struct cache_file *file, size_t item, struct image *image);
void cache_file_close(struct cache_file *file); /* zeros are allowed */

struct cache_writer {
    int file; /* −1: not open. Locked while open */
    char *path, *temporary;
    struct cache_label label;
    size_t count;
    struct cache_entry *entries;
    uint64_t available; /* limit of its size in bytes */
    atomic_ullong used;
};

/* Fails with ERROR_BUSY while another process writes the same file. Overwrites an unfinished file. */
status cache_writer_open(struct cache_writer *writer, const char *path, const struct cache_label *label, size_t count,
                         uint64_t available, struct error *error);

/* An item that is not added is absent. ERROR_IO: the disk is full or the limit reached. */
status cache_writer_add(struct cache_writer *writer, size_t item, const struct image *image, struct error *error);
status cache_writer_finish(struct cache_writer *writer, struct error *error); /* also closes it, even on failure */
void cache_writer_abandon(struct cache_writer *writer);                       /* harmless after finish */

/* --- the folder --------------------------------------------------------------------------------------------------- */

enum cache_state { CACHE_COMPLETE, CACHE_BROKEN, CACHE_UNFINISHED };

struct cache_item {
    char *path;
    enum cache_state state;
    struct cache_label label; /* of a complete file; otherwise zeros */
    size_t images;
    uint64_t bytes;
    time_t used; /* last opened by a run */
};

struct cache_listing {
    size_t count;
    struct cache_item *files; /* by name */
};

/* $XDG_CACHE_HOME/mtil, or $HOME/.cache/mtil. The caller frees; NULL when neither is set. */
char *cache_folder_default(void);

/* The file of a split's images. The caller frees. */
char *cache_folder_file(const char *folder, const struct cache_label *label, const char *list);

/* A missing folder counts as empty; foreign files are left out. */
status cache_folder_list(struct cache_listing *listing, const char *folder, struct error *error);
void cache_listing_free(struct cache_listing *listing);

/* The size limit of the file path in bytes: limit minus the folder's other files, and at most nine tenths of the
 * free disk space. Leftovers of dead writers are removed first. */
status cache_folder_available(const char *folder, const char *path, uint64_t limit, uint64_t *available,
                              struct error *error);

/* Removes the files made from datasets below root (NULL: all, and unfinished ones). Runs that use one continue; one
 * that is being written stays. removed lists the removed files. */
status cache_folder_clear(struct cache_listing *removed, const char *folder, const char *root, struct error *error);
