#include "datasets/fetch/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>

#include "core/alloc.h"
#include "core/file.h"

enum { BLOCK = 1 << 18 };

struct unpacking {
    const char *path;
    const struct fetch_settings *settings;
    struct archive *from, *to;
    size_t files;
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

/* target: the file to write; NULL: the entry's name below folder. */
static status unpack_entry(struct unpacking *u, struct archive_entry *entry, const char *folder, const char *target,
                           struct error *error)
{
    const char *name = target;
    if (u->settings->stopped != NULL && u->settings->stopped(u->settings->context))
        return error_set(error, ERROR_STOPPED, "%s: stopped while it was unpacked; it is kept for the next try",
                         u->path);
    if (target == NULL)
        TRY(check_entry(u, entry, &name, error));
    char *path = target != NULL ? xstrdup(target) : path_format("%s/%s", folder, name);
    archive_entry_copy_pathname(entry, path);
    archive_entry_set_perm(entry, archive_entry_filetype(entry) == AE_IFDIR ? 0755 : 0644);
    /* A write that fails is a warning to libarchive. */
    status result = archive_read_extract2(u->from, entry, u->to) != ARCHIVE_OK ? refuse(u, u->from, path, error) : OK;
    u->files += archive_entry_filetype(entry) == AE_IFREG;
    free(path);
    return result;
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

status unpack(const char *path, const char *folder, const char *target, const struct fetch_settings *settings,
              struct error *error)
{
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
    archive_read_free(u.from);
    archive_write_free(u.to);
    return result;
}
