/* Shared by suite.c, rows.c, parts.c and text.c: the resolved values, part by part in the order of the sections. */
#pragma once

#include <stdbool.h>

#include "core/digest.h"
#include "core/file.h"
#include "core/text.h"
#include "harness/config/source.h"

/* One set of values: a section's, or one entry's. */
struct part {
    const struct suite_section *section;
    char *entry;                           /* NULL for a section without each_of */
    struct option *table;                  /* the section's keys, the inherited ones, and those of the choice */
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

/* The part whose value is the default of key in the section's entries; NULL: key is not inherited. */
const struct part *suite_parent(const struct suite *suite, const struct suite_section *section, const char *key);

/* The next entry of section->inherits after *at: a part, and one of its keys or NULL for all. False at the end. */
bool suite_next_parent(const struct suite *suite, const char **at, const struct part **parent, const char **key);

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
