#include "models/files/torch/archive.h"
#include "core/alloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <zip.h>

struct torch_archive {
    char *path;
    zip_t *zip;
    char *folder;  /* "archive/", the beginning of every entry's name */
    uint64_t size; /* of the file */
    uint64_t read; /* bytes of the entries read so far */
};

static const char advice[] = "load it with PyTorch and save it again with torch.save(state_dict, path)";

const char *torch_archive_path(const struct torch_archive *archive)
{
    return archive->path;
}

uint64_t torch_archive_bytes(const struct torch_archive *archive)
{
    return archive->size;
}

/* ---- opening ---- */

static status refuse(const char *path, zip_error_t *problem, struct error *error)
{
    status code = zip_error_code_zip(problem) == ZIP_ER_MEMORY ? ERROR_MEMORY : ERROR_FORMAT;
    error_set(error, code,
              "%s: expected a zip archive as torch.save writes it: %s; it is cut off or damaged, fetch it again", path,
              zip_error_strerror(problem));
    return code;
}

static status check_names(const struct torch_archive *archive, const char **names, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        names[i] = zip_get_name(archive->zip, i, ZIP_FL_ENC_RAW);
        if (names[i] == NULL)
            return error_set(error, ERROR_FORMAT, "%s: entry %zu of the archive has no name", archive->path, i);
    }
    qsort(names, count, sizeof *names, array_by_text);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return error_set(error, ERROR_FORMAT, "%s: expected one entry of each name, found '%s' twice",
                             archive->path, names[i]);
    return OK;
}

/* The folder of the only entry FOLDER/data.pkl. */
static status find_folder(struct torch_archive *archive, const char *const *names, size_t count, struct error *error)
{
    static const char ending[] = "/data.pkl";
    for (size_t i = 0; i < count; i++) {
        const char *slash = strchr(names[i], '/');
        if (slash == NULL || strcmp(slash, ending) != 0)
            continue;
        if (archive->folder != NULL)
            return error_set(error, ERROR_FORMAT, "%s: expected one data.pkl, found '%sdata.pkl' and '%s'",
                             archive->path, archive->folder, names[i]);
        archive->folder = xstrndup(names[i], (size_t)(slash - names[i]) + 1);
    }
    return archive->folder != NULL
               ? OK
               : error_set(
                     error, ERROR_FORMAT,
                     "%s: expected a zip archive of PyTorch's with an entry FOLDER/data.pkl, found %zu entries, the "
                     "first '%s'; if PyTorch reads it, %s",
                     archive->path, count, count > 0 ? names[0] : "", advice);
}

static zip_int64_t locate(const struct torch_archive *archive, const char *name)
{
    char *whole = path_format("%s%s", archive->folder, name);
    zip_int64_t index = zip_name_locate(archive->zip, whole, ZIP_FL_ENC_RAW);
    free(whole);
    return index;
}

static status check_byte_order(struct torch_archive *archive, struct error *error)
{
    struct bytes order;
    if (locate(archive, "byteorder") < 0)
        return OK;
    TRY(torch_archive_read(archive, "byteorder", &order, error));
    bool little = order.size == 6 && memcmp(order.data, "little", 6) == 0;
    bytes_free(&order);
    return little ? OK
                  : error_set(error, ERROR_FORMAT,
                              "%s: expected little-endian numbers, found another order (entry byteorder); %s on a "
                              "little-endian machine",
                              archive->path, advice);
}

static status look_around(struct torch_archive *archive, struct error *error)
{
    size_t count = (size_t)zip_get_num_entries(archive->zip, 0);
    const char **names = xcalloc(count + 1, sizeof *names);
    status result = check_names(archive, names, count, error);
    NEXT(result, find_folder(archive, names, count, error));
    free(names);
    NEXT(result, check_byte_order(archive, error));
    return result;
}

/* Takes ownership of source. */
static status open_zip(struct torch_archive *archive, zip_source_t *source, zip_error_t *problem, struct error *error)
{
    if (source == NULL)
        return refuse(archive->path, problem, error);
    archive->zip = zip_open_from_source(source, ZIP_RDONLY, problem);
    if (archive->zip == NULL) {
        zip_source_free(source);
        return refuse(archive->path, problem, error);
    }
    return look_around(archive, error);
}

status torch_archive_open(struct torch_archive **archive, const char *path, struct error *error)
{
    uint64_t size;
    zip_error_t problem;
    *archive = NULL;
    TRY(file_check_kind(path, error));
    TRY(file_size(path, &size, error));
    struct torch_archive *opened = xcalloc(1, sizeof *opened);
    opened->path = xstrdup(path);
    opened->size = size;
    zip_error_init(&problem);
    status result = open_zip(opened, zip_source_file_create(path, 0, -1, &problem), &problem, error);
    zip_error_fini(&problem);
    if (result == OK)
        *archive = opened;
    else
        torch_archive_close(opened);
    return result;
}

void torch_archive_close(struct torch_archive *archive)
{
    if (archive == NULL)
        return;
    if (archive->zip != NULL)
        zip_discard(archive->zip);
    free(archive->folder);
    free(archive->path);
    free(archive);
}

/* ---- entries ---- */

static status check_entry(struct torch_archive *archive, const char *name, zip_int64_t index, size_t *size,
                          struct error *error)
{
    zip_stat_t found;
    const zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if (index < 0)
        return error_set(error, ERROR_FORMAT, "%s: entry '%s%s' is missing: the file was cut down, fetch it again",
                         archive->path, archive->folder, name);
    if (zip_stat_index(archive->zip, (zip_uint64_t)index, 0, &found) != 0 || (found.valid & needed) != needed)
        return error_set(error, ERROR_FORMAT, "%s: entry '%s%s' is not described by the archive", archive->path,
                         archive->folder, name);
    if (found.comp_method != ZIP_CM_STORE || found.encryption_method != ZIP_EM_NONE)
        return error_set(
            error, ERROR_FORMAT,
            "%s: expected entries that are stored as they are, as PyTorch writes them, found '%s%s' %s; %s",
            archive->path, archive->folder, name, found.encryption_method != ZIP_EM_NONE ? "encrypted" : "compressed",
            advice);
    if (found.size > archive->size - archive->read)
        return error_set(error, ERROR_FORMAT,
                         "%s: entry '%s%s' should have %" PRIu64 " bytes, more than are left of the file's %" PRIu64,
                         archive->path, archive->folder, name, (uint64_t)found.size, archive->size);
    *size = (size_t)found.size;
    return OK;
}

/* Reading on to the end compares the checksum. */
static bool read_whole(zip_file_t *file, uint8_t *target, size_t size)
{
    size_t done = 0;
    uint8_t more;
    while (done < size) {
        zip_int64_t count = zip_fread(file, target + done, size - done);
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return zip_fread(file, &more, 1) == 0;
}

status torch_archive_read(struct torch_archive *archive, const char *name, struct bytes *bytes, struct error *error)
{
    enum { ALIGNMENT = 64 };
    zip_int64_t index = locate(archive, name);
    *bytes = (struct bytes){0};
    TRY(check_entry(archive, name, index, &bytes->size, error));
    bytes->data = aligned_alloc(ALIGNMENT, (bytes->size + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    if (bytes->data == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for the %zu bytes of '%s%s'", archive->path, bytes->size,
                         archive->folder, name);
    bytes->data[bytes->size] = 0;
    archive->read += bytes->size;
    zip_file_t *file = zip_fopen_index(archive->zip, (zip_uint64_t)index, 0);
    bool whole = file != NULL && read_whole(file, bytes->data, bytes->size);
    if (!whole)
        error_set(error, ERROR_FORMAT, "%s: entry '%s%s' cannot be read: %s; the file is damaged, fetch it again",
                  archive->path, archive->folder, name,
                  file != NULL ? zip_file_strerror(file) : zip_strerror(archive->zip));
    if (file != NULL)
        zip_fclose(file);
    if (!whole)
        bytes_free(bytes);
    return whole ? OK : ERROR_FORMAT;
}
