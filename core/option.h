/* Options: a dataset, method or policy declares its keys in a table; suites and command lines fill them in.
 *
 *     static const struct option options[] = {
 *         OPTION_NUMBER(INTEGER, "every", 1, 1e9, "100", "iterations between merges"),
 *         OPTION_ONE_OF("moments", "keep|average|reset", "keep", "moments of the merged expert", .when = "policy!=none"),
 *         OPTION(BOOLEAN, "analysis", "yes", "record of what becomes of each merge", .incidental = "*"),
 *         {0}};
 *     struct options *values;
 *     TRY(options_create(&values, options, error));
 *     TRY(options_set(values, "every", "50", "mini.yaml:12", error));   // checks name, type, range
 *     int64_t every = options_integer(values, "every");
 *     options_destroy(values);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/scope.h"
#include "core/status.h"
#include "core/text.h"

enum option_type {
    OPTION_INTEGER,
    OPTION_REAL,
    OPTION_BOOLEAN,
    OPTION_TEXT,
    OPTION_FILE,   /* path of a file; a run's identity has the contents instead of the path */
    OPTION_FOLDER, /* path of a folder of images, likewise */
    OPTION_CHOICE, /* one of choices */
    OPTION_LIST,   /* texts, separated by commas or spaces in a string */
    OPTION_FILES   /* a list of paths of files, whose contents count, too */
};

/* Where options_fill puts a value: a member of the owner's struct, by its type. */
enum option_member { MEMBER_NONE, MEMBER_SIZE, MEMBER_FLOAT, MEMBER_DOUBLE, MEMBER_BOOL, MEMBER_TEXT, MEMBER_ENUM };

/* Whether a file of tensors states the value of their owner in its metadata. */
enum option_stated { STATED_NEVER, STATED_UNLESS_DEFAULT, STATED_ALWAYS };

/* Tables end with an entry without a name. */
struct option {
    const char *name;
    enum option_type type;
    double minimum, maximum; /* of integers and reals, inclusive; both 0: any value */
    const char *choices;     /* "keep|average|reset"; of an integer: words that may stand in its place; NULL: none */
    const char *fallback;    /* the default, as a user would write it; NULL for none (OPTION_TEXT: unset) */
    const char *help;        /* one line, lower case, no full stop */
    const char *synonyms;    /* "lr|eta": what others call it, for "did you mean" alone; NULL: none */
    const char *replaces;    /* the key that setting this one (row, command line) resets to its default; NULL: none */
    /* "auto|f32": values with which the key is no part of a run's identity, as it changes only how the run is computed, or
     * runs were like that before there was the key; "*": all values; NULL: none */
    const char *incidental;
    /* "mixup!=0", "shots!=0 or task_shots=*", "adapter.routing=per_token": values of other keys with which this one is read;
     * NULL: all. Where nothing reads it, it is neither written down nor part of a run's identity; */
    const char *when;
    bool written; /* or it is, for runs have always had it, and is refused unless it has its default */
    enum option_stated stated;
    enum option_member member;
    size_t offset; /* of the member */
};

/* Rows of a table. kind: INTEGER, REAL …; behind the help come further fields: `.synonyms = "lr|eta"`. */
#define OPTION(kind, name_, fallback_, ...)                                                                            \
    {                                                                                                                  \
        .name = (name_), .type = OPTION_##kind, .fallback = (fallback_), .help = __VA_ARGS__                           \
    }
#define OPTION_NUMBER(kind, name_, minimum_, maximum_, fallback_, ...)                                                 \
    {                                                                                                                  \
        .name = (name_), .type = OPTION_##kind, .minimum = (minimum_), .maximum = (maximum_), .fallback = (fallback_), \
        .help = __VA_ARGS__                                                                                            \
    }
#define OPTION_ONE_OF(name_, choices_, fallback_, ...)                                                                 \
    {                                                                                                                  \
        .name = (name_), .type = OPTION_CHOICE, .choices = (choices_), .fallback = (fallback_), .help = __VA_ARGS__    \
    }

/* INTO(struct task_settings, batch), behind the help: the member gets the value. Of a choice a bool is whether it is not the
 * first one, and an enum its position; a member of another type does not compile. */
#define INTO(struct_, member_)                                                                                         \
    .member = _Generic(((struct_ *)0)->member_,                                                                        \
    size_t: MEMBER_SIZE,                                                                                               \
    float: MEMBER_FLOAT,                                                                                               \
    double: MEMBER_DOUBLE,                                                                                             \
    bool: MEMBER_BOOL,                                                                                                 \
    const char *: MEMBER_TEXT,                                                                                         \
    unsigned: MEMBER_ENUM),                                                                                             \
    .offset = offsetof(struct_, member_)

enum { OPTION_WORD = -1 }; /* integers that may be words are never below 0 */

struct options; /* a table's values */

/* All values are defaults at first. table is borrowed until destroy; a NULL table has no options. */
status options_create(struct options **options, const struct option *table, struct error *error);
void options_destroy(struct options *options);
SCOPED_POINTER(struct options, options_destroy)

/* where ("suite.yaml:12:5" or "command line") is the beginning of an error message. The error for an unknown name
 * lists the allowed ones. */
status options_set(struct options *options, const char *name, const char *value, const char *where,
                   struct error *error);

const struct option *options_find(const struct option *table, const char *name); /* NULL: no such option */
bool option_is_path(const struct option *option);                                /* of files or a folder */
bool option_is_list(const struct option *option);

/* Whether the key with that value is part of a run's identity; a path is not, since its contents are. value NULL: any. */
bool option_identifies(const struct option *option, const char *value);

bool option_is_called(const struct option *option, const char *word); /* by a synonym, in any case */

const char *option_type_name(const struct option *option); /* "whole number" */
/* Appends the allowed values, "1 to 8" or "keep|average|reset"; nothing where every value is allowed. */
void option_add_range(struct text *text, const struct option *option);

/* Values by name; asking for a name or type that the table lacks is a bug in the caller. */
int64_t options_integer(const struct options *options, const char *name); /* OPTION_WORD where it is a word */
double options_real(const struct options *options, const char *name);
bool options_boolean(const struct options *options, const char *name);
const char *options_text(const struct options *options, const char *name); /* text or choice; NULL when unset */
size_t options_choice(const struct options *options, const char *name);    /* the choice's position in choices */
size_t options_list_size(const struct options *options, const char *name);
const char *options_list_item(const struct options *options, const char *name, size_t index);
/* All items of a list in an array that the caller frees, the texts borrowed. */
const char **options_list_items(const struct options *options, const char *name, size_t *count);
bool options_given(const struct options *options, const char *name); /* set, not a default */

/* Fills the members that the rows of a part of the table name (INTO); the others stay. */
void options_fill(const struct options *options, const struct option *rows, void *members);
/* The text with which a row fills its member with the value that it has; floats to nine digits. */
void option_print(const struct option *row, const void *members, char *text, size_t size);

/* The value as text, for printing and storing; borrowed until the option is set again. */
const char *options_as_text(const struct options *options, const char *name);
const struct option *options_table(const struct options *options);
