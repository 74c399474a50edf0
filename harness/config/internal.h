/* Inside a suite: its assignments before they are checked, with the place of each, and the checked values, part by
 * part in the order of the sections.
 *
 *     struct suite_source source = {.file = "mini.yaml", .sections = sections};
 *     TRY(suite_source_read(&source, text, size, error));                // structure: sections, entries, keys, values
 *     TRY(suite_source_override(&source, "merge.every=50", error));
 *     suite_source_free(&source);                                        // also after a failure
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/digest.h"
#include "core/file.h"
#include "core/text.h"
#include "harness/config/suite.h"

/* --- Its assignments --- */

enum { KEY_LENGTH = 128 }; /* of keys and entries' names, the NUL included */

struct assignment {
    const struct suite_section *section;
    char *entry; /* of a section with each_of, else NULL */
    char *key;   /* NULL: the heading of a section or entry, recorded to detect a second one */
    char *value; /* a list's items are joined by ", " */
    bool is_list;
    size_t line, column; /* from 1; line 0: the command line */
    const char *file;    /* of the suite that is used; NULL: the source's own */
};

struct suite_source {
    const char *file;
    const struct suite_section *sections;
    struct assignment *assignments;
    size_t count;
    char *use; /* the suite whose values come before the file's own; NULL: none */
    size_t use_line;
};

/* Reads one YAML document: sections of keys with a value or a flat list; no aliases, tags or repeated keys. "use: SUITE" at
 * the top puts the values of a suite that ships before the file's own, and its rows, if the file has none. */
status suite_source_read(struct suite_source *source, const char *text, size_t size, struct error *error);

/* The same without the suite that it uses, whose name is left in source->use. */
status suite_source_read_alone(struct suite_source *source, const char *text, size_t size, struct error *error);

/* The section `rows`, which every suite may have; its entries are rows, their keys as in overrides. */
extern const struct suite_section suite_rows_section;

/* Appends the values of the row called name, as if the file had them in place of its own. */
status suite_source_use_row(struct suite_source *source, const char *name, struct error *error);

/* "section.key=value", "section.entry.key=value" or, where one section has such a key, "key=value"; replaces an earlier value. */
status suite_source_override(struct suite_source *source, const char *override, struct error *error);

/* Removes the assignments [first, end). */
void suite_source_remove(struct suite_source *source, size_t first, size_t end);
void suite_source_free(struct suite_source *source);

/* "mini.yaml:12:5: merge", "command line: tasks.mnist": the place of a value, for options_set. */
void suite_source_where(const struct suite_source *source, const struct assignment *assignment, char *where,
                        size_t size);

/* Appends a deep copy of assignment. */
status suite_source_add(struct suite_source *source, const struct assignment *assignment, struct error *error);

/* The last assignment to a key of a section, or of one of its entries; key NULL: the heading. NULL: there is none. */
const struct assignment *suite_source_last(const struct suite_source *source, const struct suite_section *section,
                                           const char *entry, const char *key);

/* Fails: word, at the top of a file or before the dot of an override, is no section. */
status suite_source_unknown(const struct suite_source *source, const char *where, const char *word,
                            struct error *error);

/* Whether both are NULL or the same text. */
bool suite_same(const char *a, const char *b);

/* "every" of "merge.every", if the section is `merge`; else NULL. */
const char *suite_key_in(const struct suite_section *section, const char *name);

/* The section called name; NULL: none. */
const struct suite_section *suite_section_find(const struct suite_section *sections, const char *name);

/* --- Its values --- */

/* One set of values: a section's, or one entry's. */
struct part {
    const struct suite_section *section;
    char *entry;                           /* NULL for a section without each_of */
    char *first;                           /* the entry's name without "@2", whose values are this one's defaults */
    struct option *table;                  /* the section's keys, the inherited ones, and those of the choice */
    struct strings free;                   /* names of free keys, which the table borrows */
    size_t inherited_begin, inherited_end; /* positions in table */
    struct options *options;
};

struct suite {
    char *name;
    const struct suite_section *sections;
    struct part *parts;
    size_t count;
    struct text text;
    char hash[DIGEST_SIZE];
};

const struct part *suite_part(const struct suite *suite, const char *section, const char *entry);

/* Whether the option, of the part's table, has a value, given or by default. */
bool suite_part_has(const struct part *part, const struct option *option);

/* Whether something reads the option, a row of the part's table; whether it is written down. */
bool suite_part_reads(const struct suite *suite, const struct part *part, const struct option *option);
bool suite_part_writes(const struct suite *suite, const struct part *part, const struct option *option);

/* Appends the value; a text without quotes, nothing for one that is not set. */
void suite_value(struct text *out, const struct options *options, const struct option *option);

/* The part whose value is the default of key in the section's entries; NULL: key is not inherited. */
const struct part *suite_parent(const struct suite *suite, const struct suite_section *section, const char *key);

/* The text of a suite that ships, or of a file. */
struct suite_file {
    const char *text, *name;
    size_t size;
    struct bytes bytes; /* of a file */
};
status suite_file_open(struct suite_file *file, const char *name_or_path, struct error *error);
void suite_file_close(struct suite_file *file);

/* Fails: no suite of that name ships. files: a file would do as well. */
status suite_unknown(const char *where, const char *name, bool files, struct error *error);

status suite_check_name(const char *where, const char *kind, const char *name, struct error *error);

/* The row that the source names, *row NULL where it has no rows. ERROR_ARGUMENT for a suite that has rows and names
 * none of them. */
status suite_rows_choose(const struct suite_source *source, const char **row, struct error *error);

/* Writes all values, or only those that affect what is computed. */
void suite_write(struct text *out, const struct suite *suite, bool identity_only);
