/* Image files as batches of evaluation crops, decoded by all threads. An unreadable image is left out with a warning.
 *
 *     struct image_reader reader;
 *     TRY(image_reader_open(&reader, call, paths, resolution, squash, batch, error));
 *     do {
 *         TRY(image_reader_next(&reader, error));
 *         … reader.count images, reader.pixels, reader.slots[i].path …
 *     } while (reader.count > 0);
 *     image_reader_close(&reader);
 */
#pragma once

#include "core/threads.h"
#include "harness/commands/command.h"
#include "harness/commands/inputs/image_paths.h"

struct image_slot {
    char *path;
    struct error error;
};

struct image_reader {
    const struct command_call *call;
    struct image_paths *paths;
    struct threads *threads;
    size_t resolution, batch;
    bool squash; /* as struct loader_settings */
    bool ended;
    size_t count;             /* images of this batch: `batch`, or fewer at the end */
    struct image_slot *slots; /* [batch] */
    uint8_t *pixels;          /* [batch, R, R, 3] */
    size_t read, failed;      /* so far */
};

/* paths is borrowed; the call's options have "threads". image_reader_close also after a failure. */
status image_reader_open(struct image_reader *reader, const struct command_call *call, struct image_paths *paths,
                         size_t resolution, bool squash, size_t batch, struct error *error);
status image_reader_next(struct image_reader *reader, struct error *error);

/* Without paths (NULL): decodes the images of the first `count` slots, whose paths the caller has set and whose errors it reads. */
void image_reader_decode(struct image_reader *reader, size_t count);
void image_reader_close(struct image_reader *reader);
