/* A suite: all settings of a run, read from YAML and checked against the option tables of their owners.
 *
 *     static const struct suite_section sections[] = {
 *         {.name = "data", .options = data_options},
 *         {.name = "training", .options = training_options},
 *         {.name = "merge", .options = merge_options, .chooser = "policy", .chosen = policy_options},
 *         {.name = "tasks", .options = task_options, .each_of = "data.order", .inherits = {{"training", NULL}, {"data", "split"}}},
 *         {.name = "run", .options = run_options}, {0}};
 *     TRY(suite_load(&suite, "mini", sections, overrides, count, error));        // overrides: "merge.every=50"
 *     int64_t every = options_integer(suite_options(suite, "merge"), "every");
 *     double rate = options_real(suite_entry(suite, "tasks", "mnist"), "learning_rate");
 *
 * A suite may have rows like a table: named sets of settings that differ. The reader knows the section itself, as in
 *
 *     rows:
 *       LwF: {method.name: lwf, training.learning_rate: 1e-5}
 *       ZSCL: {method.name: zscl, tasks.mnist.learning_rate: 5e-5}
 *
 * and applies the row that the key `row` of a section names (run.row=ZSCL), after the file and before overrides.
 *
 * The reader knows no key by name: the keys of a section are its table, then inherited keys, then the keys of its
 * chooser's choice. suite_options returns all of them in one struct options.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/option.h"
#include "core/scope.h"
#include "core/status.h"
#include "core/text.h"
#include "datasets/formats/strings.h"

/* The keys that come with a choice: the table of the policy, method or reader called name (NULL: none). An unknown
 * name is an error that lists the known ones. */
typedef status (*suite_chosen)(const char *name, const struct option **table, struct error *error);

struct suite;

/* Tables of sections end with an entry whose options, chosen and name are all NULL. */
struct suite_section {
    const char *name;             /* "merge" */
    const struct option *options; /* borrowed until suite_destroy, like all of this */
    const char *chooser;          /* the key of options whose value goes to chosen; NULL: no such key */
    suite_chosen chosen;
    const char
        *free; /* "options": keys of any name below it ("options.rate") where the choice has that key; NULL: none */
    const char *(*choice)(size_t index); /* the values that bring keys, NULL past the last; NULL: chosen is */
    /* "method.ffn": the key whose value gives keys of this section their defaults, from preset(value, section, key), which is
     * NULL for those that keep their own. NULL: no such key. */
    const char *preset_by;
    const char *(*preset)(const char *value, const char *section, const char *key);
    const char *each_of; /* "data.order": a set of values for each name in that list; the name is a chooser's default */
    const char *named;   /* a key, "path", with the name as its default, too; NULL: no such key */
    /* Earlier sections, or single keys of them (key NULL: all), that are keys here too, with their values as defaults;
     * up to one without a section. */
    struct suite_inherited {
        const char *section, *key;
    } inherits[8];
    /* The expansion of a key's value ("I": eleven names), applied when the suite is read; NULL: none. NULL: the
     * section has no shorthands. */
    const char *(*shorthand)(const char *key, const char *value);
    const char *alias; /* "seed=seeds": a name for a key on command lines, where it needs no section; NULL: none */
    const char *about; /* the subject of the keys, one line, lower case, no full stop */
    const char *row;   /* the key that names the suite's row; one section has it, or none (NULL) */
    const char *when;  /* a condition of all keys of the section, as of a row (core/option.h) */
    /* Whether the suite's method, or what else the owner knows, reads the key of this section, and of those that inherit it;
     * NULL: always. */
    bool (*used)(const struct suite *suite, const char *section, const char *key);
};

/* Reads a suite that ships (a name without '/' and '.', see below) or a file, then the overrides in order:
 * "section.key=value", "tasks.mnist.key=value", "key=value" where one section alone has it. Any fault is ERROR_ARGUMENT with
 * file, line, column and the allowed values. The caller destroys the suite. */
status suite_load(struct suite **suite, const char *name_or_path, const struct suite_section *sections,
                  const char *const *overrides, size_t override_count, struct error *error);

/* The names of a suite's rows, in its order; none: the suite is one run per seed. key: the key that names a row,
 * "run.row", if the table has one. The caller frees with suite_rows_free. */
struct suite_rows {
    struct strings names;
    char *key;
};
status suite_load_rows(struct suite_rows *rows, const char *name_or_path, const struct suite_section *sections,
                       struct error *error);
void suite_rows_free(struct suite_rows *rows); /* zeros are allowed */

/* suite_load from text of size bytes, called file in messages. */
status suite_parse(struct suite **suite, const char *text, size_t size, const char *file,
                   const struct suite_section *sections, const char *const *overrides, size_t override_count,
                   struct error *error);
void suite_destroy(struct suite *suite); /* NULL is allowed */
SCOPED_POINTER(struct suite, suite_destroy)

/* A suite that a run stored, with overrides; ERROR_ARGUMENT names one that changes what it computes. */
status suite_parse_stored(struct suite **suite, const char *text, const char *name,
                          const struct suite_section *sections, const char *const *overrides, size_t override_count,
                          struct error *error);

/* The values of a section without each_of; a section that the table lacks is a bug in the caller. Borrowed. */
const struct options *suite_options(const struct suite *suite, const char *section);

/* The values of one entry of a section with each_of; NULL when the list does not hold name. Borrowed. */
const struct options *suite_entry(const struct suite *suite, const char *section, const char *name);

/* "mnist" of "mnist@2", its second visit; of another name a copy. The caller frees. */
char *suite_first_visit(const char *entry);

/* "mini": the file name without folder and ".yaml". */
const char *suite_name(const struct suite *suite);

/* Every value, defaults included, as YAML in the order of the tables: reading it again gives the same text and hash. */
const char *suite_text(const struct suite *suite);

/* The same as rows, for the table `settings` of a results database. The caller frees with suite_settings_free. */
struct setting_row; /* results/store.h */
void suite_settings(const struct suite *suite, struct setting_row **rows, size_t *count);
void suite_settings_free(struct setting_row *rows, size_t count);

/* SHA-256 of suite_text without the keys that do not identify a run (core/option.h), 64 hexadecimal digits: equal hashes
 * compute the same on the same inputs (harness/run/identity/inputs.h). */
const char *suite_settings_hash(const struct suite *suite);

/* ERROR_ARGUMENT where a key that is written down, but not read, has another value than its default. */
status suite_check_unread(const struct suite *suite, struct error *error);

/* Whether a key, "merge.every", is read with the suite's choices; otherwise its value changes nothing, and needed, unless
 * NULL, receives what would make something read it, "merge.policy!=none|ewa", or nothing where that is a matter of the
 * method. */
bool suite_reads(const struct suite *suite, const char *key, struct text *needed);

/* Whether a key of a stored suite_text, "run.threads", is one that the hash leaves out with that value. */
bool suite_key_incidental(const struct suite_section *sections, const char *key, const char *value);

/* --- The suites that ship: harness/suites/NAME.yaml, compiled into the program --- */

struct shipped_suite {
    char name[64];
    char summary[160]; /* the file's first line, when it is a comment */
    char table[160];   /* the table of a paper that it reproduces, from its second line "# Table: …"; "": none */
    const char *text;  /* NUL-terminated, size bytes without the NUL */
    size_t size;
};

size_t suite_library_size(void);
struct shipped_suite suite_library_get(size_t index);                   /* index < suite_library_size() */
bool suite_library_find(struct shipped_suite *suite, const char *name); /* false: no suite of that name ships */

/* --- keys.c: all keys that suites may have, and the key that a short name on a command line means --- */

/* suite_keys_read(&keys, settings_sections);
 * keys.list[i].section->name, keys.list[i].option->name, keys.list[i].with.data …      // "merge", "sources", "most_used"
 * suite_keys_free(&keys); */
struct suite_key {
    const struct suite_section *section;
    const struct option *option;          /* borrowed from the tables */
    const struct suite_section *inherits; /* section whose value is the default; NULL: the key has its own */
    struct text with;                     /* "mean, ties": values of the section's chooser with this key; empty: all */
};

struct suite_keys {
    struct suite_key *list; /* section by section */
    size_t count;
};

/* A key that several choices share is one entry, or several where defaults differ. The caller frees. */
void suite_keys_read(struct suite_keys *keys, const struct suite_section *sections);
void suite_keys_free(struct suite_keys *keys);

/* The full key of a short name: "merge.policy" for "policy", "run.seeds" for "seed"; *key NULL: no key has that name.
 * The caller frees. ERROR_ARGUMENT: several sections have such a key. */
status suite_key_find(char **key, const struct suite_section *sections, const char *name, struct error *error);

/* ERROR_ARGUMENT where the word, "dropout=0.1", stands for key, but a choice of the suite, such as its method, has a
 * key of that name, too. */
status suite_key_check(const struct suite *suite, const char *word, const char *key, struct error *error);

/* The full key closest to a word, "training.learning_rate" for "lr", and its edit distance, 0 for a synonym; NULL: none
 * is close. The caller frees. */
char *suite_key_near(const struct suite_section *sections, const char *word, size_t *distance);
