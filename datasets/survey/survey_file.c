#include "datasets/survey/survey_file.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "core/alloc.h"
#include "core/arena.h"
#include "core/digest.h"
#include "core/file.h"
#include "datasets/survey/survey_layout.h"

struct survey_name survey_name(const char *name)
{
    XXH128_hash_t hash = XXH3_128bits(name, strlen(name));
    return (struct survey_name){hash.low64, hash.high64};
}

char *survey_file_path(const char *folder, const struct survey_label *label)
{
    char hash[DIGEST_SIZE];
    digest_text(label->root, hash);
    return path_format("%s/%s-%.16s" SURVEY_FILE_ENDING, folder, label->dataset, hash);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

uint64_t survey_header_checksum(const struct survey_header *header)
{
    return digest_quick(header, offsetof(struct survey_header, checksum), 0);
}

void survey_header_seal(struct survey_header *header, const struct survey_record *records)
{
    XXH128_hash_t hash = XXH3_128bits(records, (size_t)header->count * sizeof *records);
    header->records_checksum[0] = hash.low64;
    header->records_checksum[1] = hash.high64;
    header->checksum = survey_header_checksum(header);
}

static int compare_names(const void *a, const void *b)
{
    const struct survey_name *x = a, *y = b;
    if (x->high != y->high)
        return x->high < y->high ? -1 : 1;
    return (x->low > y->low) - (x->low < y->low);
}

static bool in_order(const struct survey_file *file)
{
    for (size_t i = 1; i < file->count; i++)
        if (compare_names(&file->records[i - 1].name, &file->records[i].name) >= 0)
            return false;
    return true;
}

static status check_header(const struct bytes *bytes, const char *path, struct survey_header *header,
                           struct error *error)
{
    if (bytes->size < sizeof *header)
        return error_set(error, ERROR_FORMAT, "%s: expected a survey of images, found a file of %zu bytes", path,
                         bytes->size);
    memcpy(header, bytes->data, sizeof *header);
    if (memcmp(header->magic, SURVEY_MAGIC, sizeof header->magic) != 0 || header->byte_order != SURVEY_BYTE_ORDER)
        return error_set(error, ERROR_FORMAT, "%s: not a survey of this version", path);
    size_t left = bytes->size - sizeof *header;
    if (header->checksum != survey_header_checksum(header) || left % sizeof(struct survey_record) != 0 ||
        header->count != left / sizeof(struct survey_record))
        return error_set(error, ERROR_FORMAT, "%s: is damaged", path);
    return OK;
}

static status read_records(struct survey_file *file, const struct bytes *bytes, const struct survey_header *header,
                           const char *path, struct error *error)
{
    struct survey_header sealed = *header;
    file->records = xmalloc(bytes->size);
    memcpy(file->records, bytes->data + sizeof *header, bytes->size - sizeof *header);
    file->count = (size_t)header->count;
    survey_header_seal(&sealed, file->records);
    if (memcmp(&sealed, header, sizeof sealed) != 0 || !in_order(file))
        return error_set(error, ERROR_FORMAT, "%s: is damaged", path);
    return OK;
}

static status read_bytes(struct survey_file *file, const struct bytes *bytes, const char *path,
                         const struct survey_label *label, struct error *error)
{
    struct survey_header header;
    TRY(check_header(bytes, path, &header, error));
    if (strncmp(header.label.dataset, label->dataset, sizeof label->dataset) != 0 ||
        strncmp(header.label.root, label->root, sizeof label->root) != 0)
        return error_set(error, ERROR_FORMAT, "%s: belongs to other datasets", path);
    if (strncmp(header.label.decoder, label->decoder, sizeof label->decoder) != 0)
        return OK;
    return read_records(file, bytes, &header, path, error);
}

enum { TRIES = 8 };

status survey_file_read(struct survey_file *file, const char *path, const struct survey_label *label,
                        struct error *error)
{
    struct bytes bytes;
    *file = (struct survey_file){0};
    status result = ERROR_IO;
    for (int i = 0; result != OK && i < TRIES; i++) { /* another process may remove and rewrite it at any time */
        if (!file_exists(path))
            return OK;
        result = file_read(path, FILE_LIMIT, &bytes, error);
    }
    TRY(result);
    result = read_bytes(file, &bytes, path, label, error);
    bytes_free(&bytes);
    if (result != OK)
        survey_file_free(file);
    return result;
}

status survey_file_describe(const char *path, struct survey_label *label, size_t *count, struct error *error)
{
    struct survey_header header;
    struct bytes bytes;
    TRY(file_read(path, FILE_LIMIT, &bytes, error));
    status result = check_header(&bytes, path, &header, error);
    bytes_free(&bytes);
    TRY(result);
    *count = (size_t)header.count;
    *label = header.label;
    label->dataset[sizeof label->dataset - 1] = label->root[sizeof label->root - 1] = 0;
    return OK;
}

const struct survey_record *survey_file_find(const struct survey_file *file, struct survey_name name)
{
    if (file->count == 0)
        return NULL;
    return bsearch(&name, file->records, file->count, sizeof *file->records, compare_names); /* names come first */
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* Merges both sorted lists; of equal names the record of `added` wins. Returns the number of records. */
static size_t merge(struct survey_record *merged, const struct survey_file *old, const struct survey_record *added,
                    size_t count)
{
    size_t i = 0, j = 0, used = 0;
    while (i < old->count || j < count) {
        int order = i == old->count ? 1 : j == count ? -1 : compare_names(&old->records[i].name, &added[j].name);
        if (order >= 0 && used > 0 && compare_names(&merged[used - 1].name, &added[j].name) == 0)
            j++; /* a file listed twice */
        else
            merged[used++] = order < 0 ? old->records[i] : added[j++];
        i += order <= 0;
    }
    return used;
}

void survey_file_add(struct survey_file *file, struct survey_record *records, size_t count)
{
    struct survey_record *merged = xmalloc(array_size(file->count + count + 1, sizeof *merged));
    if (count > 1)
        qsort(records, count, sizeof *records, compare_names);
    file->count = merge(merged, file, records, count);
    free(file->records);
    file->records = merged;
}

status survey_file_write(const struct survey_file *file, const char *path, const struct survey_label *label,
                         struct error *error)
{
    struct file_writer writer;
    struct survey_header header;
    memset(&header, 0, sizeof header);
    memcpy(header.magic, SURVEY_MAGIC, sizeof header.magic);
    header.byte_order = SURVEY_BYTE_ORDER;
    header.count = file->count;
    header.label = *label;
    survey_header_seal(&header, file->records);
    TRY(file_writer_open(&writer, path, error));
    TRY(file_writer_write(&writer, &header, sizeof header, error));
    TRY(file_writer_write(&writer, file->records, file->count * sizeof *file->records, error));
    return file_writer_close(&writer, error);
}

void survey_file_free(struct survey_file *file)
{
    free(file->records);
    *file = (struct survey_file){0};
}
