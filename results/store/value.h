/* Values of a database, and rows of named ones. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum value_kind { VALUE_NULL, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT, VALUE_BLOB };

struct value {
    enum value_kind kind;
    union {
        int64_t integer;
        double real;
        struct {
            const void *data; /* borrowed; text has a NUL after its size */
            size_t size;
        } bytes;
    };
};

struct named_value {
    const char *name;
    struct value value;
};

static inline struct value value_null(void)
{
    return (struct value){.kind = VALUE_NULL};
}

static inline struct value value_integer(int64_t integer)
{
    return (struct value){.kind = VALUE_INTEGER, .integer = integer};
}

/* 0 becomes the null value. */
static inline struct value value_count(int64_t count)
{
    return count != 0 ? value_integer(count) : value_null();
}

static inline struct value value_real(double real)
{
    return (struct value){.kind = VALUE_REAL, .real = real};
}

static inline struct value value_blob(const void *data, size_t size)
{
    return (struct value){.kind = VALUE_BLOB, .bytes = {data, size}};
}

/* NULL becomes the null value. */
static inline struct value value_text(const char *text)
{
    return text ? (struct value){.kind = VALUE_TEXT, .bytes = {text, strlen(text)}} : value_null();
}

/* An argument list's values and their number, as the last arguments before error; with names: {"task", value}. */
#define VALUES(...) ((struct value[]){__VA_ARGS__}), sizeof((struct value[]){__VA_ARGS__}) / sizeof(struct value)
#define NO_VALUES ((struct value *)NULL), 0
#define NAMED(...)                                                                                                     \
    ((struct named_value[]){__VA_ARGS__}), sizeof((struct named_value[]){__VA_ARGS__}) / sizeof(struct named_value)
