/* Python pickles of protocol 2 as plain values. Nothing is imported or run.
 *
 *     static const struct pickle_global globals[] = {{"collections", "OrderedDict", PICKLE_DICT}};
 *     static const struct pickle_rules rules = {.globals = globals, .count = 1, .needs = "a table needs plain values only"};
 *     struct pickle *pickle;
 *     TRY(pickle_parse(&pickle, path, bytes, size, &rules, error));
 *     const struct pickle_value *value = pickle_find(pickle_root(pickle), "labels");     // NULL: no such key
 *     pickle_close(pickle);
 *
 * A pickle may use the globals that the rules list and no others. A call of one becomes a value with the global and its
 * arguments, which the caller checks. Values may contain themselves, so a caller that descends must limit its steps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_INTEGER, /* also booleans */
    PICKLE_REAL,
    PICKLE_STRING, /* bytes or text */
    PICKLE_LIST,   /* and tuples */
    PICKLE_DICT,
    PICKLE_GLOBAL,
    PICKLE_CALL,      /* of a global */
    PICKLE_PERSISTENT /* an object stored outside the pickle, by its id */
};

struct pickle_global {
    const char *module, *name; /* name NULL: every name of the module and of those inside it */
    enum pickle_kind
        makes; /* what a call of it becomes: PICKLE_CALL, PICKLE_DICT (empty at first); PICKLE_NONE: never called */
};

struct pickle_rules {
    const struct pickle_global *globals;
    size_t count;
    bool persistent;   /* whether ids are allowed */
    const char *needs; /* "a CIFAR file needs numpy's array constructors only", for messages */
};

struct pickle_value {
    enum pickle_kind kind;
    union {
        int64_t integer;
        double real;
        struct {
            const uint8_t *bytes; /* inside the pickle */
            size_t size;
        } string;
        struct {
            size_t count, capacity;
            struct pickle_value **items; /* of a dictionary: key, value, key, value … */
        } list;
        const struct pickle_global *global;
        struct {
            const struct pickle_global *callable;
            const struct pickle_value *arguments; /* PICKLE_LIST */
            const struct pickle_value *state;     /* given to the result; NULL: none */
        } call;
        const struct pickle_value *id;
    };
};

struct pickle;

/* bytes are borrowed, and the values valid, until pickle_close; name stands for the path in messages. */
status pickle_parse(struct pickle **pickle, const char *name, const void *bytes, size_t size,
                    const struct pickle_rules *rules, struct error *error);
void pickle_close(struct pickle *pickle); /* NULL is allowed */
SCOPED_POINTER(struct pickle, pickle_close)

const struct pickle_value *pickle_root(const struct pickle *pickle);

/* The value of a key that is a text; NULL when it is absent or value is no dictionary. */
const struct pickle_value *pickle_find(const struct pickle_value *value, const char *key);

/* Whether value (may be NULL) is this text; is a call of this global. */
bool pickle_is_text(const struct pickle_value *value, const char *text);
bool pickle_calls(const struct pickle_value *value, const char *name);
