/* Safetensors files: an 8-byte little-endian header length, a JSON header, the tensors' bytes.
 *
 *     struct safetensors *file;
 *     TRY(safetensors_open(&file, "clip.safetensors", WEIGHTS_WHOLE, error)); // reads the file, checks every offset and size
 *     const struct safetensor *proj = safetensors_find(file, "visual.proj");
 *     ... proj->shape[0], (const float *)proj->data ...                       // borrowed until safetensors_close
 *
 *     struct safetensor tensors[] = {{.name = "features", .type = SAFETENSOR_F32, .rank = 2, .shape = {n, d}, .data = rows}};
 *     TRY(safetensors_write("out.safetensors", tensors, 1, metadata, metadata_count, error));   // whole or not at all
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/scope.h"
#include "core/status.h"

/* Metadata that safetensors_write adds: a digest of everything else in the file. Files of others have none. */
#define SAFETENSORS_DIGEST "mtil_digest"

enum { SAFETENSORS_RANK = 8 };

enum safetensor_type {
    SAFETENSOR_BOOL,
    SAFETENSOR_U8,
    SAFETENSOR_I8,
    SAFETENSOR_U16,
    SAFETENSOR_I16,
    SAFETENSOR_F16,
    SAFETENSOR_BF16,
    SAFETENSOR_U32,
    SAFETENSOR_I32,
    SAFETENSOR_F32,
    SAFETENSOR_U64,
    SAFETENSOR_I64,
    SAFETENSOR_F64
};

struct safetensor {
    const char *name;
    enum safetensor_type type;
    int rank;
    size_t shape[SAFETENSORS_RANK];
    const void *data; /* aligned for its type; little-endian, as the file has it */
};

struct safetensors_metadata {
    const char *key, *value;
};

struct safetensors;

/* What is read of a file. The header is names, types, shapes and metadata alone: data is NULL. */
enum weights_part { WEIGHTS_WHOLE, WEIGHTS_HEADER };

/* Where a whole file states a digest, it is compared before the contents are used: ERROR_FORMAT if they differ. */
status safetensors_open(struct safetensors **file, const char *path, enum weights_part part, struct error *error);
void safetensors_close(struct safetensors *file); /* NULL is allowed */
SCOPED_POINTER(struct safetensors, safetensors_close)

/* Wraps tensors of another format in a struct safetensors. tensors [count] and metadata (NULL: none) are copied; names and
 * data belong to owner, which safetensors_close passes to release. */
void safetensors_adopt(struct safetensors **file, const char *path, const struct safetensor *tensors, size_t count,
                       const struct safetensors_metadata *metadata, size_t metadata_count, void *owner,
                       void (*release)(void *owner));

/* Takes out of all names what wrappers of a model put into them, wherever it stands: "module.visual._orig_mod.proj" becomes
 * "visual.proj". ERROR_FORMAT where two become one. */
status safetensors_unwrap(struct safetensors *file, struct error *error);

size_t safetensors_count(const struct safetensors *file);
const struct safetensor *safetensors_at(const struct safetensors *file, size_t index);       /* sorted by name */
const struct safetensor *safetensors_find(const struct safetensors *file, const char *name); /* NULL: absent */
const char *safetensors_metadata_value(const struct safetensors *file, const char *key);     /* NULL: absent */
const char *safetensors_metadata_key(const struct safetensors *file, size_t index);          /* NULL: no more */
const char *safetensors_path(const struct safetensors *file);

/* The tensor called name with exactly this type and shape, or an error that names tensor, file and both shapes. */
status safetensors_expect(const struct safetensors *file, const char *name, enum safetensor_type type, int rank,
                          const size_t *shape, const struct safetensor **tensor, struct error *error);

size_t safetensor_elements(const struct safetensor *tensor);
size_t safetensor_type_size(enum safetensor_type type);
const char *safetensor_type_name(enum safetensor_type type); /* "F32" */

/* A shape in words, "[3, 224, 224]", for messages. */
struct shape_text {
    char text[192];
};
struct shape_text shape_text(int rank, const size_t *shape);

/* Copies any of F32, F16, BF16, F64 to floats (values [safetensor_elements]); other types are an error. */
status safetensor_to_floats(const struct safetensor *tensor, float *values, struct error *error);

/* Checks values [n], read from the tensor called name and perhaps converted: a NaN or an infinity is an error that names the
 * tensor, the file and the position. */
status safetensors_expect_finite(const struct safetensors *file, const char *name, const float *values, size_t n,
                                 struct error *error);

/* Writes the tensors in the order given, without gaps as the format demands, with a digest in the metadata; the first one's
 * data starts at a multiple of 64 bytes. Names must differ and be UTF-8. */
status safetensors_write(const char *path, const struct safetensor *tensors, size_t count,
                         const struct safetensors_metadata *metadata, size_t metadata_count, struct error *error);

/* A digest of a file's contents that does not depend on their order: "xxh3:0123456789abcdef". metadata may be NULL; its entry
 * SAFETENSORS_DIGEST is left out. It detects damage and editing, at the speed of memory, but not an attacker who computes it
 * anew. */
struct safetensors_digest {
    char text[24];
};
struct json_t; /* jansson's */
struct safetensors_digest safetensors_digest(const struct json_t *metadata, const struct safetensor *tensors,
                                             size_t count);
