/* The image files named on a command line, files, folders with everything below them, and lists, as batches of evaluation
 * crops, decoded by all threads. An unreadable image is left out with a warning.
 *
 *     struct image_names names = {call->arguments, call->argument_count, "list.txt"};
 *     struct image_reader reader;
 *     TRY(image_reader_open(&reader, call, &names, resolution, squash, batch, error));
 *     do {
 *         TRY(image_reader_next(&reader, error));
 *         … reader.count images, reader.pixels, reader.slots[i].path …
 *     } while (reader.count > 0);
 *     image_reader_close(&reader);
 *
 * A folder gives the files whose content or name is that of an image, in byte order of their paths; links are
 * followed. Only the names in the folders being walked are held in memory.
 */
#pragma once

#include "core/threads.h"
#include "harness/commands/command.h"

/* Borrowed. "@FILE" and list (NULL: none) name a file with a path per line, relative to where the program runs; list comes
 * after the arguments. */
struct image_names {
    const char *const *arguments;
    size_t count;
    const char *list;
};

/* Fails for an argument or list that is missing, or is neither file nor folder. */
status image_names_check(const struct image_names *names, struct error *error);

struct image_slot {
    char *path;
    struct error error;
};

struct image_reader {
    const struct command_call *call;
    struct image_paths *paths; /* NULL: without names */
    struct threads *threads;
    size_t resolution, batch;
    bool squash; /* as struct loader_settings */
    bool ended;
    size_t count;             /* images of this batch: `batch`, or fewer at the end */
    struct image_slot *slots; /* [batch] */
    uint8_t *pixels;          /* [batch, R, R, 3] */
    size_t read, failed;      /* so far */
};

/* Checks the names; the call's options have "threads". image_reader_close also after a failure. */
status image_reader_open(struct image_reader *reader, const struct command_call *call, const struct image_names *names,
                         size_t resolution, bool squash, size_t batch, struct error *error);
status image_reader_next(struct image_reader *reader, struct error *error);

/* For a reader without names (NULL): decodes the images of the first `count` slots. The caller sets their paths and
 * reads their errors. */
void image_reader_decode(struct image_reader *reader, size_t count);
void image_reader_close(struct image_reader *reader);
