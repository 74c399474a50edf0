#include "harness/commands/inputs/image_reader.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "datasets/image/image.h"

/* The search through the named files, folders and lists. */
struct image_paths {
    struct image_names names;
    size_t next; /* of the arguments; the list is number `count` */
    const struct stop *stop;
    const char *list_open;
    FILE *list; /* being read; NULL: none */
    char *line;
    size_t line_size, line_number;
    FTS *walk; /* of a folder; NULL: none */
    size_t left_out;
    char *first_left; /* what systems left in the folders */
    char *path;       /* the last one that was given */
};

/* --- Kinds of arguments --- */

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static status check_argument(const char *path, const char *expected, bool folders, struct error *error)
{
    struct stat information;
    if (stat(path, &information) != 0)
        return error_errno(error, errno, "%s: expected %s", path, expected);
    const char *end = strrchr(path, '.');
    bool image = true;
    if (folders && S_ISREG(information.st_mode) && end != NULL && text_has_word("safetensors|pt|pth|bin", end + 1))
        TRY(image_file_recognize(&image, path, error));
    if (!image)
        return error_set(
            error, ERROR_ARGUMENT,
            "%s: expected %s, found weights; name them with an option (--run N, --adapters FILE), which takes "
            "one file, where a pattern may name several",
            path, expected);
    if (S_ISREG(information.st_mode) || (folders && S_ISDIR(information.st_mode)))
        return OK;
    return error_set(error, ERROR_ARGUMENT, "%s: expected %s, found %s", path, expected, kind_of(information.st_mode));
}

static const char *list_of(const char *argument)
{
    return *argument == '@' ? argument + 1 : NULL;
}

status image_names_check(const struct image_names *names, struct error *error)
{
    static const char list[] = "a file that lists images, one path per line";
    for (size_t i = 0; i < names->count; i++) {
        const char *argument = names->arguments[i], *named = list_of(argument);
        TRY(check_argument(named != NULL ? named : argument, named != NULL ? list : "an image file or a folder",
                           named == NULL, error));
    }
    return names->list != NULL ? check_argument(names->list, list, false, error) : OK;
}

static void leave_folder(struct image_paths *paths)
{
    if (paths->walk != NULL)
        fts_close(paths->walk);
    paths->walk = NULL;
}

/* --- Folders --- */

/* Compares whole paths, so that "a.jpg" comes before "a/b.jpg". */
static int by_path(const FTSENT **a, const FTSENT **b)
{
    const char *x = (*a)->fts_name, *y = (*b)->fts_name;
    for (; *x != 0 && *x == *y; x++)
        y++;
    int left = *x == 0 && (*a)->fts_info == FTS_D ? '/' : (unsigned char)*x,
        right = *y == 0 && (*b)->fts_info == FTS_D ? '/' : (unsigned char)*y;
    return left - right;
}

static status enter_folder(struct image_paths *paths, const char *named, struct error *error)
{
    OWNED char *folder = xstrdup(named);
    for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/';)
        folder[--end] = 0;
    paths->walk = fts_open((char *const[]){folder, NULL}, FTS_LOGICAL | FTS_NOCHDIR, by_path);
    return paths->walk != NULL ? OK : error_errno(error, errno, "%s: cannot list this folder", named);
}

/* One step in the folder; *found: it reached an image. */
static status walk(struct image_paths *paths, bool *found, struct error *error)
{
    FTSENT *entry = fts_read(paths->walk);
    *found = false;
    if (entry == NULL) {
        leave_folder(paths);
    } else if (entry->fts_level > FTS_ROOTLEVEL && path_is_leftover(entry->fts_name)) {
        fts_set(paths->walk, entry, FTS_SKIP);
        if (entry->fts_info != FTS_DP && paths->left_out++ == 0)
            paths->first_left = xstrdup(entry->fts_path);
    } else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
        return error_errno(error, entry->fts_errno, "%s: cannot list this folder", entry->fts_path);
    else if (entry->fts_info == FTS_DC)
        return error_set(error, ERROR_FORMAT, "%s: a symbolic link leads back to a folder that it is in",
                         entry->fts_path);
    else if (entry->fts_info == FTS_F)
        TRY(image_file_recognize(found, entry->fts_path, error));
    if (*found) {
        free(paths->path);
        paths->path = xstrdup(entry->fts_path);
    }
    return OK;
}

/* --- Lists and arguments --- */

/* A named file or folder. If it has disappeared, reading it reports that. */
static status enter_argument(struct image_paths *paths, const char *named, bool *found, struct error *error)
{
    *found = !file_is_directory(named);
    if (!*found)
        return enter_folder(paths, named, error);
    free(paths->path);
    paths->path = xstrdup(named);
    return OK;
}

static status open_list(struct image_paths *paths, const char *name, struct error *error)
{
    TRY(file_check_meant(name, false, error));
    paths->list_open = name;
    paths->line_number = 0;
    paths->list = fopen(name, "re");
    return paths->list != NULL ? OK : error_errno(error, errno, "%s: cannot be opened", name);
}

static status end_list(struct image_paths *paths, struct error *error)
{
    bool failed = ferror(paths->list) != 0;
    fclose(paths->list);
    paths->list = NULL;
    return failed ? error_set(error, ERROR_IO, "%s: cannot be read to its end", paths->list_open) : OK;
}

static status next_line(struct image_paths *paths, bool *found, struct error *error)
{
    ssize_t length = getline(&paths->line, &paths->line_size, paths->list);
    char *line = paths->line;
    *found = false;
    if (length < 0)
        return end_list(paths, error);
    if (++paths->line_number == 1 && length >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3; /* a byte order mark */
        length -= 3;
    }
    while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
        line[--length] = 0;
    if ((size_t)length != strlen(line))
        return error_set(error, ERROR_FORMAT, "%s:%zu: expected a path, found a NUL byte", paths->list_open,
                         paths->line_number);
    return length > 0 ? enter_argument(paths, line, found, error) : OK;
}

static status next_argument(struct image_paths *paths, bool *found, struct error *error)
{
    const struct image_names *names = &paths->names;
    const char *argument = paths->next < names->count ? names->arguments[paths->next] : NULL,
               *list = argument != NULL ? list_of(argument) : names->list;
    paths->next++;
    *found = false;
    return list != NULL ? open_list(paths, list, error) : enter_argument(paths, argument, found, error);
}

/* The next image, borrowed until the next call; NULL: no more. A folder or line that cannot be read is an error; the next call
 * continues after it. */
static status next_image(struct image_paths *paths, const char **path, struct error *error)
{
    size_t last = paths->names.count + (paths->names.list != NULL);
    bool found = false;
    *path = NULL;
    while (!found && !stop_requested(paths->stop) &&
           (paths->walk != NULL || paths->list != NULL || paths->next < last)) {
        if (paths->walk != NULL)
            TRY(walk(paths, &found, error));
        else if (paths->list != NULL)
            TRY(next_line(paths, &found, error));
        else
            TRY(next_argument(paths, &found, error));
    }
    if (found)
        *path = paths->path;
    return stop_requested(paths->stop) ? error_set(error, ERROR_STOPPED, "stopped while searching for images") : OK;
}

static void close_paths(struct image_paths *paths, const struct log *log)
{
    leave_folder(paths);
    if (paths->left_out > 0)
        log_info(log, "files and folders left out that a system left there: %zu (%s%s)", paths->left_out,
                 paths->first_left, paths->left_out > 1 ? ", …" : "");
    free(paths->first_left);
    if (paths->list != NULL)
        fclose(paths->list);
    free(paths->line);
    free(paths->path);
    free(paths);
}

/* --- Batches --- */

status image_reader_open(struct image_reader *reader, const struct command_call *call, const struct image_names *names,
                         size_t resolution, bool squash, size_t batch, struct error *error)
{
    *reader = (struct image_reader){.call = call,
                                    .resolution = resolution,
                                    .squash = squash,
                                    .batch = batch,
                                    .slots = xcalloc(batch, sizeof *reader->slots),
                                    .pixels = xmalloc(array_size(batch, resolution * resolution * 3))};
    if (names != NULL) {
        reader->paths = xcalloc(1, sizeof *reader->paths);
        *reader->paths = (struct image_paths){.names = *names, .stop = call->stop};
        TRY(image_names_check(names, error));
    }
    return threads_create(&reader->threads, (size_t)options_integer(call->options, "threads"), error);
}

void image_reader_close(struct image_reader *reader)
{
    threads_destroy(reader->threads);
    for (size_t i = 0; reader->slots != NULL && i < reader->batch; i++)
        free(reader->slots[i].path);
    free(reader->slots);
    free(reader->pixels);
    if (reader->paths != NULL)
        close_paths(reader->paths, reader->call->log);
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
    SCOPED(image_free) struct image image = {0};
    slot->error.code = OK;
    if (stop_requested(reader->call->stop) || image_decode_file(&image, slot->path, &slot->error) != OK)
        return;
    if ((reader->squash ? image_squash : image_evaluation_crop)(
            &image, (int)reader->resolution, pixels_of(reader, reader->count + job), &slot->error) != OK)
        error_context(&slot->error, "%s", slot->path);
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
    status result = next_image(reader->paths, &path, &reason);
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

/* Removes those of `count` new slots that could not be read. A shortage is no fault of an image. */
static status move_up(struct image_reader *reader, size_t count, struct error *error)
{
    size_t first = reader->count;
    for (size_t i = first; i < first + count; i++) {
        struct image_slot slot = reader->slots[i];
        if (slot.error.code == ERROR_MEMORY)
            return error_set(error, ERROR_MEMORY, "%s", slot.error.message);
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
    return OK;
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
        TRY(move_up(reader, count, error));
    }
    reader->read += reader->count;
    return OK;
}
