#include "harness/commands/inputs/image_reader.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arena.h"
#include "datasets/image/image.h"

status image_reader_open(struct image_reader *reader, const struct command_call *call, struct image_paths *paths,
                         size_t resolution, bool squash, size_t batch, struct error *error)
{
    *reader = (struct image_reader){.call = call,
                                    .paths = paths,
                                    .resolution = resolution,
                                    .squash = squash,
                                    .batch = batch,
                                    .slots = xcalloc(batch, sizeof *reader->slots),
                                    .pixels = xmalloc(array_size(batch, resolution * resolution * 3))};
    return threads_create(&reader->threads, (size_t)options_integer(call->options, "threads"), error);
}

void image_reader_close(struct image_reader *reader)
{
    threads_destroy(reader->threads);
    for (size_t i = 0; reader->slots != NULL && i < reader->batch; i++)
        free(reader->slots[i].path);
    free(reader->slots);
    free(reader->pixels);
}

static uint8_t *pixels_of(const struct image_reader *reader, size_t slot)
{
    return reader->pixels + slot * reader->resolution * reader->resolution * 3;
}

/* Into the slots after the filled ones. */
static void decode_job(void *context, size_t job, size_t worker)
{
    const struct image_reader *reader = context;
    struct image_slot *slot = &reader->slots[reader->count + job];
    struct image image;
    (void)worker;
    slot->error.code = OK;
    if (stop_requested(reader->call->stop) || image_decode_file(&image, slot->path, &slot->error) != OK)
        return;
    if ((reader->squash ? image_squash : image_evaluation_crop)(
            &image, (int)reader->resolution, pixels_of(reader, reader->count + job), &slot->error) != OK)
        error_context(&slot->error, "%s", slot->path);
    image_free(&image);
}

void image_reader_decode(struct image_reader *reader, size_t count)
{
    threads_run(reader->threads, count, decode_job, reader);
}

static void report_failure(struct image_reader *reader, const struct error *error)
{
    log_warn(reader->call->log, "%s", error->message);
    reader->failed++;
}

static status next_path(struct image_reader *reader, struct image_slot *slot, bool *found, struct error *error)
{
    const char *path = NULL;
    struct error reason = {.code = OK};
    status result = image_paths_next(reader->paths, &path, &reason);
    *found = false;
    if (result == ERROR_STOPPED || result == ERROR_MEMORY)
        return error_set(error, result, "%s", reason.message);
    if (result != OK) {
        report_failure(reader, &reason);
        return OK;
    }
    reader->ended = path == NULL;
    if (path == NULL)
        return OK;
    free(slot->path);
    slot->path = xstrdup(path);
    *found = true;
    return OK;
}

/* Removes those of `count` new slots that could not be read. */
static void move_up(struct image_reader *reader, size_t count)
{
    size_t first = reader->count;
    for (size_t i = first; i < first + count; i++) {
        struct image_slot slot = reader->slots[i];
        if (slot.error.code != OK) {
            report_failure(reader, &slot.error);
            continue;
        }
        if (i != reader->count)
            memcpy(pixels_of(reader, reader->count), pixels_of(reader, i),
                   (size_t)(pixels_of(reader, 1) - reader->pixels));
        reader->slots[i] = reader->slots[reader->count];
        reader->slots[reader->count++] = slot;
    }
}

status image_reader_next(struct image_reader *reader, struct error *error)
{
    reader->count = 0;
    while (!reader->ended && reader->count < reader->batch) {
        size_t count = 0;
        while (!reader->ended && reader->count + count < reader->batch) {
            bool found;
            TRY(next_path(reader, &reader->slots[reader->count + count], &found, error));
            count += found;
        }
        image_reader_decode(reader, count);
        if (stop_requested(reader->call->stop))
            return error_set(error, ERROR_STOPPED, "stopped after %zu images", reader->read);
        move_up(reader, count);
    }
    reader->read += reader->count;
    return OK;
}
