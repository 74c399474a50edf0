/* Internal: the file that stores the results for image files, one per root and reader.
 *
 *     struct survey_file file;
 *     TRY(survey_file_read(&file, path, &label, error));                // no file: no records
 *     const struct survey_record *record = survey_file_find(&file, survey_name(name));
 *     TRY(survey_file_write(&file, path, &label, error));
 *     survey_file_free(&file);
 *
 * A header with a label of what the records belong to, then the records. Checksums of both are compared before use.
 * Files are read by the kind of machine that wrote them.
 */
#ifndef MTIL_DATASETS_SURVEY_SURVEY_FILE_H
#define MTIL_DATASETS_SURVEY_SURVEY_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#define SURVEY_FILE_ENDING ".survey"

/* What the records belong to, padded with zeros. */
struct survey_label {
    char dataset[64], root[4096];
    char decoder[64]; /* image_version */
};

/* A 128-bit hash of a file's name. */
struct survey_name {
    uint64_t low, high;
};

/* Metadata that changes with a file's content. Times in nanoseconds since 1970, modulo 2⁶⁴. */
struct survey_stamp {
    uint64_t size, inode, modified, changed;
};

struct survey_record {
    struct survey_name name;
    struct survey_stamp stamp;
    uint64_t pixels[2];
    uint32_t width; /* 0: the file cannot be decoded */
    uint32_t height : 31, clipped : 1;
};

struct survey_file {
    size_t count;
    struct survey_record *records; /* by name, each name once */
};

/* "FOLDER/dtd-0123456789abcdef.survey". The caller frees. */
char *survey_file_path(const char *folder, const struct survey_label *label);
struct survey_name survey_name(const char *name);

/* The caller frees file, also after a failure, which leaves no records. ERROR_FORMAT: damaged, or it belongs to
 * something else. A file of another version of the decoders has no records. */
status survey_file_read(struct survey_file *file, const char *path, const struct survey_label *label,
                        struct error *error);

/* Only the label, for lists, without the records. */
status survey_file_describe(const char *path, struct survey_label *label, size_t *count, struct error *error);
const struct survey_record *survey_file_find(const struct survey_file *file, struct survey_name name);

/* Adds records, in any order, replacing those with the same names; sorts them. */
void survey_file_add(struct survey_file *file, struct survey_record *records, size_t count);

/* Complete or absent, without sync. */
status survey_file_write(const struct survey_file *file, const char *path, const struct survey_label *label,
                         struct error *error);
void survey_file_free(struct survey_file *file);

#endif
