#include "models/files/torch/torch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zip.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "core/text.h"
#include "models/files/torch/tensors.h"

/* ---- the archive ---- */

/* Entries below one folder, stored as they are. Nothing is decompressed: a compressed entry is refused, and the entries read must
 * not be larger together than the file. */
struct archive {
    char *path;
    zip_t *zip;
    char *folder;  /* "archive/", the beginning of every entry's name */
    uint64_t size; /* of the file */
    uint64_t read; /* bytes of the entries read so far */
};

static const char advice[] = "load it with PyTorch and save it again with torch.save(state_dict, path)";

static zip_int64_t locate(const struct archive *archive, const char *name)
{
    OWNED char *whole = path_format("%s%s", archive->folder, name);
    return zip_name_locate(archive->zip, whole, ZIP_FL_ENC_RAW);
}

static status check_entry(struct archive *archive, const char *name, zip_int64_t index, size_t *size,
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

/* Says why an entry cannot be read: the system or a shortage of memory, which another try may not meet, or damage. */
static status refuse_entry(const struct archive *archive, const char *name, zip_file_t *file, struct error *error)
{
    zip_error_t *problem = file != NULL ? zip_file_get_error(file) : zip_get_error(archive->zip);
    if (zip_error_system_type(problem) == ZIP_ET_SYS && zip_error_code_system(problem) != 0)
        return error_errno(error, zip_error_code_system(problem), "%s: entry '%s%s' cannot be read", archive->path,
                           archive->folder, name);
    error_set(error, ERROR_FORMAT, "%s: entry '%s%s' cannot be read: %s; the file is damaged, fetch it again",
              archive->path, archive->folder, name, zip_error_strerror(problem));
    return memory_blame(ERROR_FORMAT, archive->path, error);
}

/* The caller frees with bytes_free; the data is aligned for every type. */
static status archive_read(struct archive *archive, const char *name, struct bytes *bytes, struct error *error)
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
    errno = 0;
    zip_file_t *file = zip_fopen_index(archive->zip, (zip_uint64_t)index, 0);
    bool whole = file != NULL && read_whole(file, bytes->data, bytes->size);
    status result = whole ? OK : refuse_entry(archive, name, file, error);
    if (file != NULL)
        zip_fclose(file);
    if (!whole)
        bytes_free(bytes);
    return result;
}

static status refuse(const char *path, zip_error_t *problem, struct error *error)
{
    status code = zip_error_code_zip(problem) == ZIP_ER_MEMORY ? ERROR_MEMORY : ERROR_FORMAT;
    error_set(error, code,
              "%s: expected a zip archive as torch.save writes it: %s; it is cut off or damaged, fetch it again", path,
              zip_error_strerror(problem));
    return code;
}

static status check_names(const struct archive *archive, const char **names, size_t count, struct error *error)
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
static status find_folder(struct archive *archive, const char *const *names, size_t count, struct error *error)
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

static status check_byte_order(struct archive *archive, struct error *error)
{
    SCOPED(bytes_free) struct bytes order = {0};
    if (locate(archive, "byteorder") < 0)
        return OK;
    TRY(archive_read(archive, "byteorder", &order, error));
    bool little = order.size == 6 && memcmp(order.data, "little", 6) == 0;
    return little ? OK
                  : error_set(error, ERROR_FORMAT,
                              "%s: expected little-endian numbers, found another order (entry byteorder); %s on a "
                              "little-endian machine",
                              archive->path, advice);
}

static status look_around(struct archive *archive, struct error *error)
{
    size_t count = (size_t)zip_get_num_entries(archive->zip, 0);
    OWNED const char **names = xcalloc(count + 1, sizeof *names);
    TRY(check_names(archive, names, count, error));
    TRY(find_folder(archive, names, count, error));
    return check_byte_order(archive, error);
}

/* Takes ownership of source. */
static status open_zip(struct archive *archive, zip_source_t *source, zip_error_t *problem, struct error *error)
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

static void archive_close(struct archive *archive)
{
    if (archive->zip != NULL)
        zip_discard(archive->zip);
    free(archive->folder);
    free(archive->path);
    free(archive);
}
SCOPED_POINTER(struct archive, archive_close)

static status archive_open(struct archive **archive, const char *path, struct error *error)
{
    SCOPED(archive_close_at) struct archive *opened = xcalloc(1, sizeof *opened);
    SCOPED(zip_error_fini) zip_error_t problem = {0};
    opened->path = xstrdup(path);
    TRY(file_check_kind(path, error));
    TRY(file_size(path, &opened->size, error));
    zip_error_init(&problem);
    TRY(open_zip(opened, zip_source_file_create(path, 0, -1, &problem), &problem, error));
    *archive = TAKE(opened);
    return OK;
}

/* ---- values ---- */

/* Copies of tensors that are not contiguous may take this many times the bytes of the file. */
enum { COPIES_MOST = 4 };

/* Memory that the tensors of an open file point to. */
struct content {
    struct torch_tensors tensors;
    struct bytes *storages; /* by storage */
    void **copies;          /* by tensor; NULL: it lies in its storage */
};

static void release(void *owner)
{
    struct content *content = owner;
    for (size_t i = 0; content->storages != NULL && i < content->tensors.storage_count; i++)
        bytes_free(&content->storages[i]);
    for (size_t i = 0; content->copies != NULL && i < content->tensors.count; i++)
        free(content->copies[i]);
    free(content->storages);
    free(content->copies);
    torch_tensors_free(&content->tensors);
    free(content);
}
SCOPED_POINTER(struct content, release)

static status read_storage(struct archive *archive, const struct torch_storage *storage, struct bytes *bytes,
                           struct error *error)
{
    OWNED char *name = path_format("data/%s", storage->key);
    size_t each = safetensor_type_size(storage->type);
    TRY(archive_read(archive, name, bytes, error));
    if (bytes->size % each != 0 || bytes->size / each != storage->elements)
        return error_set(error, ERROR_FORMAT, "%s: entry '%s': expected %zu numbers of type %s, found %zu bytes",
                         archive->path, name, storage->elements, safetensor_type_name(storage->type), bytes->size);
    return OK;
}

/* Copies rows of the last axis; index counts the rows. */
static void gather(const struct torch_tensor *t, size_t each, const uint8_t *source, uint8_t *target)
{
    int last = t->tensor.rank - 1;
    size_t index[SAFETENSORS_RANK] = {0}, columns = last >= 0 ? t->tensor.shape[last] : 1,
           step = last >= 0 ? t->stride[last] : 1, rows = safetensor_elements(&t->tensor) / columns;
    for (size_t row = 0; row < rows; row++) {
        size_t at = t->offset;
        for (int r = 0; r < last; r++)
            at += index[r] * t->stride[r];
        for (size_t c = 0; c < columns; c++, target += each)
            memcpy(target, source + (at + c * step) * each, each);
        for (int r = last - 1; r >= 0 && ++index[r] == t->tensor.shape[r]; r--)
            index[r] = 0;
    }
}

static status place(struct archive *archive, struct content *content, size_t i, uint64_t *copied, struct error *error)
{
    struct torch_tensor *t = &content->tensors.list[i];
    struct safetensor *tensor = &t->tensor;
    const uint8_t *data = content->storages[t->storage].data;
    size_t each = safetensor_type_size(tensor->type), size = safetensor_elements(tensor) * each;
    tensor->data = data;
    if (t->contiguous) {
        if (size > 0)
            tensor->data = data + t->offset * each;
        return OK;
    }
    *copied += size;
    if (*copied > COPIES_MOST * archive->size)
        return error_set(error, ERROR_FORMAT,
                         "%s: tensor '%s': its tensors that are not contiguous take more than %d times the file",
                         archive->path, tensor->name, COPIES_MOST);
    content->copies[i] = malloc(size);
    if (content->copies[i] == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory for the %zu bytes of tensor '%s'", archive->path, size,
                         tensor->name);
    gather(t, each, data, content->copies[i]);
    tensor->data = content->copies[i];
    return OK;
}

static status read_values(struct archive *archive, struct content *content, struct error *error)
{
    const struct torch_tensors *tensors = &content->tensors;
    uint64_t copied = 0;
    content->storages = xcalloc(tensors->storage_count, sizeof *content->storages);
    content->copies = xcalloc(tensors->count, sizeof *content->copies);
    for (size_t i = 0; i < tensors->storage_count; i++)
        TRY(read_storage(archive, &tensors->storages[i], &content->storages[i], error));
    for (size_t i = 0; i < tensors->count; i++)
        TRY(place(archive, content, i, &copied, error));
    return OK;
}

/* ---- the file ---- */

static status find_tensors(struct archive *archive, struct torch_tensors *tensors, struct error *error)
{
    SCOPED(bytes_free) struct bytes pickle = {0};
    OWNED char *name = path_format("%s: data.pkl", archive->path);
    TRY(archive_read(archive, "data.pkl", &pickle, error));
    return torch_tensors_find(tensors, name, pickle.data, pickle.size, error);
}

status torch_file_open(struct safetensors **file, const char *path, enum weights_part part, struct error *error)
{
    SCOPED(archive_close_at) struct archive *archive = NULL;
    SCOPED(release_at) struct content *content = xcalloc(1, sizeof *content);
    const struct torch_tensors *tensors = &content->tensors;
    *file = NULL;
    TRY(archive_open(&archive, path, error));
    TRY(find_tensors(archive, &content->tensors, error));
    if (part == WEIGHTS_WHOLE)
        TRY(read_values(archive, content, error));
    OWNED struct safetensor *list = xcalloc(tensors->count, sizeof *list);
    for (size_t i = 0; i < tensors->count; i++)
        list[i] = tensors->list[i].tensor;
    safetensors_adopt(file, archive->path, list, tensors->count, tensors->metadata, tensors->metadata_count,
                      TAKE(content), release);
    return OK;
}

bool torch_file_is_one(const void *beginning, size_t size)
{
    return size >= 4 && memcmp(beginning, "PK\x03\x04", 4) == 0;
}

status torch_file_refuse_old(const char *path, const void *beginning, size_t size, struct error *error)
{
    const uint8_t *bytes = beginning;
    if (size < 2 || bytes[0] != 0x80 || bytes[1] < 2 || bytes[1] > 5)
        return OK;
    return error_set(
        error, ERROR_FORMAT,
        "%s: expected a zip archive or safetensors, found a bare pickle, as PyTorch wrote it before version "
        "1.6; load it with PyTorch and save it again: torch.save(torch.load(path, weights_only=True), path)",
        path);
}

/* Time of every entry, in seconds since 1970: the earliest that zip can store. */
enum { YEAR_1980 = 315532800 };

/* ---- writing: the pickle ---- */

static void put(struct text *text, const char *opcodes)
{
    text_add_bytes(text, opcodes, strlen(opcodes));
}

static void put_number(struct text *text, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        char byte = (char)(number >> (8 * i) & 0xff);
        text_add_bytes(text, &byte, 1);
    }
}

static void put_integer(struct text *text, size_t integer)
{
    if (integer <= INT32_MAX) {
        put(text, "J");
        put_number(text, integer, 4);
    } else {
        put(text, "\x8a\x08");
        put_number(text, integer, 8);
    }
}

static void put_string(struct text *text, const char *string)
{
    put(text, "X");
    put_number(text, strlen(string), 4);
    put(text, string);
}

static void put_tensor(struct text *text, const struct safetensor *tensor, const char *storage, size_t key)
{
    char digits[24];
    size_t strides[SAFETENSORS_RANK + 1];
    strides[tensor->rank] = 1;
    for (int i = tensor->rank - 1; i >= 0; i--)
        strides[i] = strides[i + 1] * (tensor->shape[i] > 0 ? tensor->shape[i] : 1);
    snprintf(digits, sizeof digits, "%zu", key);
    put(text, "ctorch._utils\n_rebuild_tensor_v2\n((");
    put_string(text, "storage");
    text_add(text, "ctorch\n%s\n", storage);
    put_string(text, digits);
    put_string(text, "cpu");
    put_integer(text, safetensor_elements(tensor));
    put(text, "tQ");
    put_integer(text, 0);
    put(text, "(");
    for (int i = 0; i < tensor->rank; i++)
        put_integer(text, tensor->shape[i]);
    put(text, "t(");
    for (int i = 0; i < tensor->rank; i++)
        put_integer(text, strides[i + 1]);
    put(text, "t\x89"
              "ccollections\nOrderedDict\n)RtR");
}

static status put_all(struct text *text, const char *path, const struct safetensor *tensors, size_t count,
                      const struct safetensors_metadata *metadata, size_t metadata_count, struct error *error)
{
    put(text, "\x80\x02}(");
    put_string(text, "state_dict");
    put(text, "ccollections\nOrderedDict\n)R(");
    for (size_t i = 0; i < count; i++) {
        const char *storage = torch_storage_name(tensors[i].type);
        if (storage == NULL)
            return error_set(error, ERROR_ARGUMENT, "%s: tensor '%s': PyTorch has no type %s", path, tensors[i].name,
                             safetensor_type_name(tensors[i].type));
        put_string(text, tensors[i].name);
        put_tensor(text, &tensors[i], storage, i);
    }
    put(text, "u");
    put_string(text, TORCH_METADATA);
    put(text, "}(");
    for (size_t i = 0; i < metadata_count; i++) {
        put_string(text, metadata[i].key);
        put_string(text, metadata[i].value);
    }
    put(text, "uu.");
    return OK;
}

/* ---- writing: the archive ---- */

/* data is borrowed until the archive is closed. */
static bool add_entry(zip_t *zip, const char *name, const void *data, size_t size)
{
    zip_source_t *source = zip_source_buffer(zip, size > 0 ? data : "", size, 0);
    zip_int64_t at = source != NULL ? zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8) : -1;
    if (at < 0) {
        zip_source_free(source);
        return false;
    }
    return zip_set_file_compression(zip, (zip_uint64_t)at, ZIP_CM_STORE, 0) == 0 &&
           zip_file_set_mtime(zip, (zip_uint64_t)at, YEAR_1980, 0) == 0;
}

static bool add_entries(zip_t *zip, const struct text *pickle, const struct safetensor *tensors, size_t count)
{
    bool added = add_entry(zip, "archive/data.pkl", pickle->data, pickle->size) &&
                 add_entry(zip, "archive/byteorder", "little", 6);
    for (size_t i = 0; added && i < count; i++) {
        char name[48];
        snprintf(name, sizeof name, "archive/data/%zu", i);
        added = add_entry(zip, name, tensors[i].data,
                          safetensor_elements(&tensors[i]) * safetensor_type_size(tensors[i].type));
    }
    return added && add_entry(zip, "archive/version", "3\n", 2);
}

static status write_archive(const char *path, const struct text *pickle, const struct safetensor *tensors, size_t count,
                            struct error *error)
{
    int code;
    zip_error_t problem;
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (zip == NULL) {
        zip_error_init_with_code(&problem, code);
        error_set(error, ERROR_IO, "%s: cannot be written: %s", path, zip_error_strerror(&problem));
        zip_error_fini(&problem);
        return ERROR_IO;
    }
    if (add_entries(zip, pickle, tensors, count) && zip_close(zip) == 0)
        return OK;
    error_set(error, ERROR_IO, "%s: cannot be written: %s", path, zip_strerror(zip));
    zip_discard(zip);
    return ERROR_IO;
}

static status sync_file(const char *path, struct error *error)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    status result = file >= 0 && fsync(file) == 0 ? OK : error_errno(error, errno, "%s: cannot be written", path);
    if (file >= 0)
        close(file);
    return result;
}

/* libzip writes beside its target and renames, which leaves the lock of a temporary file behind: the folder's stays. */
static status write_beside(const char *path, const struct text *pickle, const struct safetensor *tensors, size_t count,
                           struct error *error)
{
    struct temporary folder;
    TRY(temporary_create_folder(&folder, path, error));
    OWNED char *inside = path_format("%s/archive", folder.path);
    status result = write_archive(inside, pickle, tensors, count, error);
    NEXT(result, sync_file(inside, error));
    if (result == OK && rename(inside, path) != 0)
        result = error_errno(error, errno, "%s: cannot be written", path);
    if (result == OK)
        file_sync_name(path);
    temporary_remove(&folder);
    return result;
}

status torch_file_write(const char *path, const struct safetensor *tensors, size_t count,
                        const struct safetensors_metadata *metadata, size_t metadata_count, struct error *error)
{
    SCOPED(text_free) struct text pickle = {0};
    if (file_exists(path))
        TRY(file_check_kind(path, error));
    TRY(put_all(&pickle, path, tensors, count, metadata, metadata_count, error));
    return write_beside(path, &pickle, tensors, count, error);
}
