/* Python pickles of CIFAR: dictionaries of byte strings, integers, lists and one numpy array of bytes.
 *
 *     struct pickle *pickle;
 *     TRY(pickle_open(&pickle, "cifar-100-python/train", error));
 *     const struct pickle_value *data = pickle_find(pickle, "data");      // NULL: no such key
 *     if (data != NULL && data->kind == PICKLE_ARRAY) … data->array.bytes, data->array.rows …
 *     pickle_close(pickle);
 *
 * A fixed set of opcodes builds plain values. Nothing is imported or run: the only accepted globals are the names of
 * numpy's three constructors, which are implemented here. Everything else is refused.
 */
#ifndef MTIL_DATASETS_FORMATS_PICKLE_H
#define MTIL_DATASETS_FORMATS_PICKLE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_INTEGER, /* also booleans */
    PICKLE_STRING,  /* bytes or text */
    PICKLE_LIST,    /* and tuples */
    PICKLE_DICT,
    PICKLE_GLOBAL,
    PICKLE_TYPE, /* a numpy.dtype */
    PICKLE_ARRAY
};

enum pickle_global { PICKLE_RECONSTRUCT, PICKLE_NDARRAY, PICKLE_DTYPE };

struct pickle_value {
    enum pickle_kind kind;
    union {
        int64_t integer;
        enum pickle_global global;
        struct {
            const uint8_t *bytes; /* inside the file */
            size_t size;
        } string;
        struct {
            size_t count, capacity;
            struct pickle_value **items; /* of a dictionary: key, value, key, value … */
        } list;
        struct {
            const uint8_t *bytes; /* inside the file; NULL until its state is known */
            size_t rows, columns;
        } array;
    };
};

struct pickle;

/* The file stays mapped and the values valid until pickle_close. */
status pickle_open(struct pickle **pickle, const char *path, struct error *error);
void pickle_close(struct pickle *pickle); /* NULL is allowed */

/* The value of a key of the dictionary that the file holds; NULL when it is absent. */
const struct pickle_value *pickle_find(const struct pickle *pickle, const char *key);

#endif
