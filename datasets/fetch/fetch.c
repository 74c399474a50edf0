#include "datasets/fetch/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>
#include <curl/curl.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "core/text.h"
#include "datasets/dataset.h"
#include "datasets/fetch/transfer.h"

/* --- archives, by libarchive -------------------------------------------------------------------------------------- */

enum { BLOCK = 1 << 18 };

struct unpacking {
    const char *path;
    const struct fetch_settings *settings;
    struct archive *from, *to;
    size_t files, left_out;
    char first_left[256];
};

static status refuse(const struct unpacking *u, struct archive *archive, const char *what, struct error *error)
{
    const char *reason = archive_error_string(archive);
    int code = archive_errno(archive);
    bool refused = code > 0 && code != EILSEQ; /* libarchive's code for a wrong format */
    return error_set(error, refused ? ERROR_IO : ERROR_FORMAT, "%s: cannot unpack %s: %s%s%s", u->path, what,
                     reason != NULL ? reason : "damaged", refused ? ": " : "", refused ? strerror(code) : "");
}

/* The entry's name, if it is a file or folder that stays below the target. */
static status check_entry(const struct unpacking *u, struct archive_entry *entry, const char **name,
                          struct error *error)
{
    *name = archive_entry_pathname(entry);
    if (*name == NULL || **name == 0)
        return error_set(error, ERROR_FORMAT, "%s: holds a file whose name cannot be read; refused", u->path);
    if (**name == '/' || path_climbs(*name))
        return error_set(error, ERROR_FORMAT, "%s: holds \"%s\", which leads out of the folder; refused", u->path,
                         *name);
    bool link = archive_entry_hardlink(entry) != NULL;
    if (link || (archive_entry_filetype(entry) != AE_IFREG && archive_entry_filetype(entry) != AE_IFDIR))
        return error_set(error, ERROR_FORMAT, "%s: holds \"%s\", a link or device; refused", u->path, *name);
    return OK;
}

/* What a system left in the folder that was packed: counted, the first one named. */
static status leave_out(struct unpacking *u, const char *name)
{
    if (u->left_out++ == 0)
        snprintf(u->first_left, sizeof u->first_left, "%s", name);
    return OK;
}

/* target: the file to write; NULL: the entry's name below folder. */
static status unpack_entry(struct unpacking *u, struct archive_entry *entry, const char *folder, const char *target,
                           struct error *error)
{
    const char *name = target;
    if (stop_requested(u->settings->stop))
        return error_set(error, ERROR_STOPPED, "%s: stopped while it was unpacked; it is kept for the next try",
                         u->path);
    const char *inside = target == NULL ? archive_entry_pathname(entry) : NULL;
    if (inside != NULL && path_is_leftover(inside))
        return leave_out(u, inside);
    if (target == NULL)
        TRY(check_entry(u, entry, &name, error));
    OWNED char *path = target != NULL ? xstrdup(target) : path_format("%s/%s", folder, name);
    archive_entry_copy_pathname(entry, path);
    archive_entry_set_perm(entry, archive_entry_filetype(entry) == AE_IFDIR ? 0755 : 0644);
    /* A write that fails is a warning to libarchive. */
    if (archive_read_extract2(u->from, entry, u->to) != ARCHIVE_OK)
        return refuse(u, u->from, path, error);
    u->files += archive_entry_filetype(entry) == AE_IFREG;
    return OK;
}

static status unpack_entries(struct unpacking *u, const char *folder, const char *target, struct error *error)
{
    struct archive_entry *entry;
    int code = archive_read_open_filename(u->from, u->path, BLOCK);
    while (code >= ARCHIVE_WARN && (code = archive_read_next_header(u->from, &entry)) >= ARCHIVE_WARN &&
           code != ARCHIVE_EOF)
        TRY(unpack_entry(u, entry, folder, target, error));
    if (code < ARCHIVE_WARN)
        return refuse(u, u->from, "the archive", error);
    if (u->files == 0)
        return error_set(error, ERROR_FORMAT, "%s: expected an archive of files, found none in it", u->path);
    return archive_write_close(u->to) < ARCHIVE_WARN ? refuse(u, u->to, "the archive", error) : OK;
}

/* Unpacks an archive's files and folders below folder, which is created; with target, a gzip file to that file. Absolute
 * paths, "..", links and devices are refused with the name of the first. What was unpacked before a failure stays. */
static status unpack(const char *path, const char *folder, const char *target, const struct fetch_settings *settings,
                     struct error *error)
{
    TRY(file_check_meant(path, true, error));
    struct unpacking u = {
        .path = path, .settings = settings, .from = archive_read_new(), .to = archive_write_disk_new()};
    status result = target == NULL ? directory_create(folder, error) : OK;
    if (result == OK && (u.from == NULL || u.to == NULL))
        result = error_set(error, ERROR_MEMORY, "%s: no memory to unpack it", path);
    if (result == OK) {
        archive_read_support_filter_gzip(u.from); /* the only one in the table; some of the others start programs */
        if (target != NULL)
            archive_read_support_format_raw(u.from);
        else if (archive_read_support_format_tar(u.from) == ARCHIVE_OK)
            archive_read_support_format_zip(u.from);
        result = unpack_entries(&u, folder, target, error);
    }
    if (u.left_out > 0)
        log_info(settings->log, "%s: files and folders left out that a system left there: %zu (%s%s)", path, u.left_out,
                 u.first_left, u.left_out > 1 ? ", …" : "");
    archive_read_free(u.from);
    archive_write_free(u.to);
    return result;
}

/* --- one dataset -------------------------------------------------------------------------------------------------- */

/* One dataset on its way: files are downloaded to `downloads`, unpacked to a temporary folder in it, and the result moves
 * to `target`. */
struct fetch {
    const struct fetch_source *source;
    const struct fetch_settings *settings;
    const char *root;
    char *downloads, *lock_path, *target;
    int folder, lock; /* folder: downloads */
    struct temporary unpacked;
};

static status lock_downloads(struct fetch *fetch, struct error *error)
{
    TRY(directory_create(fetch->downloads, error));
    fetch->folder = open(fetch->downloads, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fetch->folder < 0)
        return errno == ENOTDIR || errno == ELOOP
                   ? error_set(error, ERROR_IO, "%s: expected a folder, found a symbolic link; remove it",
                               fetch->downloads)
                   : error_errno(error, errno, "%s: cannot be opened", fetch->downloads);
    TRY(file_open_own(fetch->folder, fetch->lock_path, O_RDWR, &fetch->lock, error));
    if (flock(fetch->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return error_set(error, ERROR_BUSY, "%s: another process is fetching %s", fetch->downloads,
                         fetch->source->name);
    return OK;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static status download(const struct fetch *fetch, const struct fetch_file *file, const char *part, struct error *error)
{
    const char *from = fetch->settings->from;
    if (from == NULL)
        return transfer_get(file, file->urls, fetch->folder, part, fetch->settings, error);
    size_t size = strlen(from);
    OWNED char *url = path_format("%.*s/%s/%s", (int)(size > 0 && from[size - 1] == '/' ? size - 1 : size), from,
                                  fetch->source->name, file->name);
    return transfer_get(file, (const char *const[]){url, NULL}, fetch->folder, part, fetch->settings, error);
}

static status copy(const char *from, const char *to, struct error *error)
{
    SCOPED(bytes_free) struct bytes bytes = {0};
    TRY(file_read_any(from, FILE_LIMIT, &bytes, error));
    return file_write(to, bytes.data, bytes.size, error);
}

/* An archive within an archive is unpacked from a folder that is removed with the temporary one. */
static status unpack_inner(const struct fetch *fetch, const struct fetch_file *file, const char *part,
                           const char *folder, struct error *error)
{
    OWNED char *outer = path_format("%s/outer", fetch->unpacked.path);
    OWNED char *inner = path_format("%s/%s", outer, file->inner);
    TRY(unpack(part, outer, NULL, fetch->settings, error));
    return unpack(inner, folder, NULL, fetch->settings, error);
}

static status place(const struct fetch *fetch, const struct fetch_file *file, const char *part, struct error *error)
{
    int size = (int)strlen(file->name) - (file->kind == FETCH_GZIP ? (int)strlen(".gz") : 0);
    OWNED char *folder = path_format("%s/%s", fetch->unpacked.path, file->into);
    OWNED char *target = path_format("%s/%.*s", folder, size, file->name);
    TRY(directory_create(folder, error));
    if (file->kind == FETCH_PLAIN)
        return copy(part, target, error);
    if (file->inner != NULL)
        return unpack_inner(fetch, file, part, folder, error);
    return unpack(part, folder, file->kind == FETCH_GZIP ? target : NULL, fetch->settings, error);
}

static status each_file(const struct fetch *fetch,
                        status (*act)(const struct fetch *, const struct fetch_file *, const char *, struct error *),
                        struct error *error)
{
    for (const struct fetch_file *file = fetch->source->files; file->name != NULL; file++) {
        OWNED char *part = path_format("%s/%s.part", fetch->downloads, file->name);
        TRY(act(fetch, file, part, error));
    }
    return OK;
}

static status remove_part(const struct fetch *fetch, const struct fetch_file *file, const char *part,
                          struct error *error)
{
    unlink(part);
    return OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* Opens the unpacked dataset before it gets its name; the reader looks for every listed image. */
static status check(const struct fetch *fetch, struct error *error)
{
    SCOPED(dataset_close_at) struct dataset *dataset = NULL;
    if (dataset_open(&dataset, fetch->source->name, fetch->unpacked.path, NULL, NULL, error) != OK)
        return error_context(error, "the fetched dataset cannot be read");
    return OK;
}

static status move(const struct fetch *fetch, struct error *error)
{
    OWNED char *made = path_format("%s/%s", fetch->unpacked.path, fetch->source->folder);
    TRY(file_sync_all(fetch->root, error));
    if (rename(made, fetch->target) != 0)
        return error_errno(error, errno, "%s: cannot be renamed to %s", made, fetch->target);
    file_sync_name(fetch->target);
    return OK;
}

static status fetch_files(struct fetch *fetch, struct error *error)
{
    temporary_clear(fetch->downloads);
    status result = each_file(fetch, download, error);
    if (result == ERROR_IO && fetch->source->gone != NULL)
        log_warn(fetch->settings->log, "%s: %s", fetch->source->name, fetch->source->gone);
    TRY(result);
    OWNED char *name = path_format("%s/unpacked", fetch->downloads);
    result = temporary_create_folder(&fetch->unpacked, name, error);
    NEXT(result, each_file(fetch, place, error));
    NEXT(result, check(fetch, error));
    NEXT(result, move(fetch, error));
    temporary_remove(&fetch->unpacked);
    if (result == OK)
        log_info(fetch->settings->log, "%s: complete", fetch->target);
    return result;
}

static void clear_downloads(const struct fetch *fetch)
{
    temporary_clear(fetch->downloads);
    each_file(fetch, remove_part, NULL);
    unlink(fetch->lock_path);
    rmdir(fetch->downloads);
}

static status fetch_absent(struct fetch *fetch, struct error *error)
{
    bool there = file_exists(fetch->target);
    if (there)
        log_info(fetch->settings->log, "%s: already there and left as it is; mtil data check %s --dataset=%s checks it",
                 fetch->target, fetch->root, fetch->source->name);
    if (there && !file_exists(fetch->downloads))
        return OK;
    TRY(lock_downloads(fetch, error));
    if (!there)
        TRY(fetch_files(fetch, error));
    clear_downloads(fetch); /* also leftovers of a process that was killed at the end */
    return OK;
}

status fetch_dataset(const struct fetch_source *source, const char *root, const struct fetch_settings *settings,
                     struct error *error)
{
    if (source->by_hand != NULL)
        return error_set(error, ERROR_ARGUMENT, "%s has to be fetched by hand: %s", source->name, source->by_hand);
    struct fetch fetch = {.source = source,
                          .settings = settings,
                          .root = root,
                          .downloads = path_format("%s/%s.download", root, source->folder),
                          .lock_path = path_format("%s/%s.download/lock", root, source->folder),
                          .target = path_format("%s/%s", root, source->folder),
                          .folder = -1,
                          .lock = -1};
    status result = fetch_absent(&fetch, error);
    if (fetch.lock >= 0)
        close(fetch.lock);
    if (fetch.folder >= 0)
        close(fetch.folder);
    free(fetch.downloads);
    free(fetch.lock_path);
    free(fetch.target);
    return result;
}

status fetch_find(const char *name, const struct fetch_source **source, struct error *error)
{
    enum { MOST = 32 };
    const char *names[MOST];
    size_t count = 0;
    for (*source = fetch_sources; (*source)->name != NULL && count < MOST; (*source)++) {
        names[count++] = (*source)->name;
        if (strcmp((*source)->name, name) == 0)
            return OK;
    }
    return error_unknown_word(error, "data get", "dataset", name, names, count);
}

status fetch_check_mirror(const char *from, struct error *error)
{
    CURLU *parts = curl_url();
    bool good = parts != NULL && curl_url_set(parts, CURLUPART_URL, from, 0) == CURLUE_OK;
    curl_url_cleanup(parts);
    if (good && strpbrk(from, "?#") == NULL && /* names of files follow it */
        (strncasecmp(from, "http://", strlen("http://")) == 0 ||
         strncasecmp(from, "https://", strlen("https://")) == 0))
        return OK;
    const char *secret = strrchr(from, '@');
    return error_set(error, ERROR_ARGUMENT, "expected an address, as http://server/data, found \"%s%s\"",
                     secret != NULL ? "…" : "", secret != NULL ? secret : from);
}

const char *fetch_curl_version(void)
{
    return curl_version_info(CURLVERSION_NOW)->version;
}

const char *fetch_archive_version(void)
{
    return archive_version_string() + strcspn(archive_version_string(), "0123456789");
}
