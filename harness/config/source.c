#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/config/internal.h"
#include "harness/config/suite.h"

enum { ASSIGNMENTS = 4096 }; /* bounds the quadratic search for repeated keys */

const struct suite_section suite_rows_section = {.name = "rows", .each_of = "rows"};

bool suite_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

const char *suite_key_in(const struct suite_section *section, const char *name)
{
    size_t length = strlen(section->name);
    return strncmp(section->name, name, length) == 0 && name[length] == '.' ? name + length + 1 : NULL;
}

const struct suite_section *suite_section_find(const struct suite_section *sections, const char *name)
{
    for (; sections->name != NULL; sections++)
        if (strcmp(sections->name, name) == 0)
            return sections;
    return NULL;
}

void suite_source_where(const struct suite_source *source, const struct assignment *assignment, char *where,
                        size_t size)
{
    char path[2 * KEY_LENGTH + 4];
    snprintf(path, sizeof path, ": %s%s%s", assignment->section->name, assignment->entry != NULL ? "." : "",
             assignment->entry != NULL ? assignment->entry : "");
    if (assignment->line == 0)
        snprintf(where, size, "command line%s", path);
    else
        snprintf(where, size, "%s:%zu:%zu%s", assignment->file != NULL ? assignment->file : source->file,
                 assignment->line, assignment->column, path);
}

enum { SHORT_FORM = 4 }; /* letters with which a word may stand for a longer one */

status suite_source_unknown(const struct suite_source *source, const char *where, const char *word, struct error *error)
{
    const char *names[256];
    size_t count = 0, most = sizeof names / sizeof *names;
    for (const struct suite_section *section = source->sections; section->name != NULL && count + 1 < most; section++)
        names[count++] = section->name;
    names[count++] = suite_rows_section.name;
    const char *near = nearest_word(word, names, count);
    size_t distance;
    OWNED char *key = suite_key_near(source->sections, word, &distance);
    bool is_key = key != NULL && 2 * distance < strlen(word) && (near == NULL || distance < edit_distance(word, near));
    for (size_t i = 0; i < count; i++)
        if (strlen(word) >= SHORT_FORM && strncmp(names[i], word, strlen(word)) == 0)
            near = names[i], is_key = false; /* "train" is short for "training", although delta.train is a key */
    error_unknown_word_near(error, where, "section or key", word, is_key ? key : near, names, count);
    return ERROR_ARGUMENT;
}

const struct assignment *suite_source_last(const struct suite_source *source, const struct suite_section *section,
                                           const char *entry, const char *key)
{
    for (size_t i = source->count; i-- > 0;) {
        const struct assignment *assignment = &source->assignments[i];
        if (assignment->section == section && suite_same(assignment->entry, entry) && suite_same(assignment->key, key))
            return assignment;
    }
    return NULL;
}

static char *copy(const char *string)
{
    return string != NULL ? xstrdup(string) : NULL;
}

/* The assignment's value, or its expansion. */
static const char *written_out(const struct assignment *assignment)
{
    const struct suite_section *section = assignment->section;
    if (section->shorthand == NULL || assignment->key == NULL || assignment->value == NULL)
        return assignment->value;
    const char *stands_for = section->shorthand(assignment->key, assignment->value);
    return stands_for != NULL ? stands_for : assignment->value;
}

status suite_source_add(struct suite_source *source, const struct assignment *assignment, struct error *error)
{
    if (source->count == ASSIGNMENTS)
        return error_set(error, ERROR_ARGUMENT, "%s: a suite has at most %d values, found more", source->file,
                         ASSIGNMENTS);
    GROW(source->assignments, source->count);
    struct assignment *added = &source->assignments[source->count++];
    *added = *assignment;
    added->entry = copy(assignment->entry);
    added->key = copy(assignment->key);
    added->value = copy(written_out(assignment));
    return OK;
}

void suite_source_remove(struct suite_source *source, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        free(source->assignments[i].entry);
        free(source->assignments[i].key);
        free(source->assignments[i].value);
    }
    for (size_t i = end; i < source->count; i++)
        source->assignments[first + i - end] = source->assignments[i];
    source->count -= end - first;
}

void suite_source_free(struct suite_source *source)
{
    suite_source_remove(source, 0, source->count);
    free(source->assignments);
    free(source->use);
    source->assignments = NULL;
    source->use = NULL;
}

/* Fills assignment from left, which is split at its dots. */
static status split_path(const struct suite_source *source, const char *where, char *left,
                         struct assignment *assignment, struct error *error)
{
    char *dot = strchr(left, '.');
    if (dot != NULL)
        *dot = 0;
    assignment->section = suite_section_find(source->sections, left);
    if (assignment->section == NULL)
        return suite_source_unknown(source, where, left, error);
    if (dot == NULL)
        return error_set(error, ERROR_ARGUMENT, "%s: %s is a section; expected %s.KEY=VALUE", where, left, left);
    assignment->key = dot + 1;
    if (assignment->section->each_of == NULL)
        return OK;
    assignment->entry = dot + 1;
    dot = strrchr(assignment->entry, '.'); /* the last one: an entry's name may hold dots, a key does not */
    if (dot == NULL)
        return error_set(error, ERROR_ARGUMENT, "%s: %s: expected %s.NAME.KEY=VALUE, found %s.%s", where, left, left,
                         left, assignment->entry);
    *dot = 0;
    assignment->key = dot + 1;
    return OK;
}

/* The value without the brackets of a printed list, "[dtd, mnist]"; the caller frees. NULL: it has no brackets. */
static char *inside_brackets(const struct assignment *assignment)
{
    const struct option *option = options_find(assignment->section->options, assignment->key);
    const char *value = assignment->value;
    size_t length = strlen(value);
    bool bracketed = length > 1 && value[0] == '[' && value[length - 1] == ']';
    return bracketed && option != NULL && option_is_list(option) ? xstrndup(value + 1, length - 2) : NULL;
}

static bool has_key(const struct suite_source *source, size_t first, const struct assignment *assignment,
                    const char *key)
{
    for (size_t i = first; i < source->count; i++) {
        const struct assignment *other = &source->assignments[i];
        bool same_place = (other->line == 0) == (assignment->line == 0);
        if (other->section == assignment->section && same_place && suite_same(other->entry, assignment->entry) &&
            suite_same(other->key, key))
            return true;
    }
    return false;
}

/* "epochs=2" on a command line is meant in place of the iterations that the file states, and in a file in place of those of
 * the suite that it uses. Both in one place are refused when the settings are checked. first: where the row or file begins. */
static status set_back(struct suite_source *source, size_t first, const struct assignment *assignment,
                       struct error *error)
{
    const struct option *option = options_find(assignment->section->options, assignment->key);
    if (option == NULL || option->replaces == NULL || strtod(assignment->value, NULL) <= 0 ||
        has_key(source, first, assignment, option->replaces))
        return OK;
    struct assignment back = *assignment;
    back.key = (char *)option->replaces;
    back.value = (char *)options_find(assignment->section->options, option->replaces)->fallback;
    return suite_source_add(source, &back, error);
}

/* Adds the value of assignment to what path names: "merge.every", "tasks.mnist.learning_rate". first: as above. */
static status add_path(struct suite_source *source, size_t first, const char *where, const char *path, size_t size,
                       struct assignment *assignment, struct error *error)
{
    OWNED char *left = xstrndup(path, size);
    TRY(split_path(source, where, left, assignment, error));
    if (strlen(left) + strlen(assignment->key) >= KEY_LENGTH)
        return error_set(error, ERROR_ARGUMENT, "%s: a key of more than %d characters", where, KEY_LENGTH - 1);
    OWNED char *list = inside_brackets(assignment);
    assignment->value = list != NULL ? list : assignment->value;
    TRY(suite_source_add(source, assignment, error));
    return set_back(source, first, assignment, error);
}

/* "rows.ZSCL.method.reference_images": a value of one row; a row's name has no dots. */
static status add_to_row(struct suite_source *source, const char *path, size_t size, const char *value,
                         struct error *error)
{
    char left[2 * KEY_LENGTH];
    snprintf(left, sizeof left, "%.*s", (int)size, path);
    char *dot = strchr(left, '.'), *entry = dot != NULL ? dot + 1 : left, *key = strchr(entry, '.');
    if (size >= sizeof left || key == NULL || key == entry || key[1] == 0)
        return error_set(error, ERROR_ARGUMENT, "command line: rows: expected rows.NAME.SECTION.KEY=VALUE, found %s",
                         path);
    *key++ = 0;
    struct assignment assignment = {
        .section = &suite_rows_section, .entry = entry, .key = key, .value = (char *)value}; /* is copied */
    return suite_source_add(source, &assignment, error);
}

/* *key NULL: the name is a full key, or unknown. */
static status find_whole_key(const struct suite_source *source, const char *name, size_t size, char **key,
                             struct error *error)
{
    *key = NULL;
    if (memchr(name, '.', size) != NULL)
        return OK;
    OWNED char *word = xstrndup(name, size);
    return suite_key_find(key, source->sections, word, error);
}

status suite_source_override(struct suite_source *source, const char *override, struct error *error)
{
    const char *equals = strchr(override, '=');
    if (equals == NULL || equals == override)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: expected KEY=VALUE, for example merge.every=50, found \"%s\"", override);
    if (text_find_invalid(override) != NULL)
        return error_set(error, ERROR_ARGUMENT, "command line: \"%s\" is not valid UTF-8", override);
    size_t section = strlen(suite_rows_section.name);
    if (strncmp(override, suite_rows_section.name, section) == 0 &&
        (override[section] == '.' || override[section] == '='))
        return add_to_row(source, override, (size_t)(equals - override), equals + 1, error);
    struct assignment assignment = {.value = (char *)equals + 1}; /* is copied */
    OWNED char *key = NULL;
    TRY(find_whole_key(source, override, (size_t)(equals - override), &key, error));
    const char *path = key != NULL ? key : override;
    size_t size = key != NULL ? strlen(key) : (size_t)(equals - override);
    return add_path(source, 0, "command line", path, size, &assignment, error);
}

/* Whether the value names a row of its suite. */
static bool names_row(const struct assignment *assignment)
{
    return assignment->section->row != NULL && suite_same(assignment->key, assignment->section->row);
}

status suite_source_use_row(struct suite_source *source, const char *name, struct error *error)
{
    size_t count = source->count;
    for (size_t i = 0; i < count; i++) {
        struct assignment row = source->assignments[i]; /* the array may move */
        if (row.section != &suite_rows_section || row.key == NULL || strcmp(row.entry, name) != 0)
            continue;
        char where[512];
        struct assignment added = {
            .value = row.value, .is_list = row.is_list, .line = row.line, .column = row.column, .file = row.file};
        suite_source_where(source, &row, where, sizeof where);
        bool of_rows = strncmp(row.key, "rows.", 5) == 0;
        if (!of_rows)
            TRY(add_path(source, count, where, row.key, strlen(row.key), &added, error));
        if (of_rows || names_row(&source->assignments[source->count - 1]))
            return error_set(error, ERROR_ARGUMENT, "%s: expected a key that names no row, found %s", where, row.key);
    }
    return OK;
}

/* --- A suite that uses another one: the other's values come first, so that its own replace them --- */

static bool has_rows(const struct suite_source *source)
{
    for (size_t i = 0; i < source->count; i++)
        if (source->assignments[i].section == &suite_rows_section)
            return true;
    return false;
}

static status read_used(const struct suite_source *source, struct suite_source *used, struct error *error)
{
    char where[512];
    snprintf(where, sizeof where, "%s:%zu: use", source->file, source->use_line);
    struct shipped_suite shipped;
    if (!suite_library_find(&shipped, source->use))
        return suite_unknown(where, source->use, false, error);
    TRY(suite_source_read_alone(used, shipped.text, shipped.size, error));
    return used->use == NULL ? OK
                             : error_set(error, ERROR_ARGUMENT, "%s: the suite %s uses %s itself; use that one", where,
                                         shipped.name, used->use);
}

/* The last value of a key is its value, and takes the place of what the key replaces. Of rows the file has its own or the
 * other's, and with them the one that is named. */
static status join(struct suite_source *source, struct suite_source *used, struct error *error)
{
    bool own_rows = has_rows(source);
    SCOPED(suite_source_free) struct suite_source own = *source;
    *source = (struct suite_source){.file = own.file, .sections = own.sections, .use = own.use};
    own.use = NULL;
    for (size_t i = 0; i < used->count; i++) {
        used->assignments[i].file = source->use;
        if (!own_rows || (used->assignments[i].section != &suite_rows_section && !names_row(&used->assignments[i])))
            TRY(suite_source_add(source, &used->assignments[i], error));
    }
    size_t first = source->count;
    for (size_t i = 0; i < own.count; i++) {
        TRY(suite_source_add(source, &own.assignments[i], error));
        if (own.assignments[i].value != NULL && own.assignments[i].section != &suite_rows_section)
            TRY(set_back(source, first, &own.assignments[i], error));
    }
    return OK;
}

status suite_source_read(struct suite_source *source, const char *text, size_t size, struct error *error)
{
    TRY(suite_source_read_alone(source, text, size, error));
    if (source->use == NULL)
        return OK;
    SCOPED(suite_source_free) struct suite_source used = {.file = source->use, .sections = source->sections};
    TRY(read_used(source, &used, error));
    return join(source, &used, error);
}

static const struct suite_section *find_chooser(const struct suite_section *sections)
{
    while (sections->name != NULL && sections->row == NULL)
        sections++;
    return sections->name != NULL ? sections : NULL;
}

/* Refuses dots, commas and spaces in a row's name, because the command line lists rows: row=LwF,ZSCL. */
static status check_row(const struct suite_source *source, const struct assignment *row, struct error *error)
{
    char where[512];
    struct assignment heading = {.section = row->section, .line = row->line, .column = row->column};
    suite_source_where(source, &heading, where, sizeof where);
    if (strpbrk(row->entry, "., ") != NULL)
        return error_set(error, ERROR_ARGUMENT, "%s: row \"%s\": expected a name without dots, commas and spaces",
                         where, row->entry);
    return suite_check_name(where, "row", row->entry, error);
}

/* The names of the rows, in the order of their headings. */
static status read_rows(struct strings *rows, const struct suite_source *source, struct error *error)
{
    for (size_t i = 0; i < source->count; i++) {
        const struct assignment *assignment = &source->assignments[i];
        if (assignment->section != &suite_rows_section || assignment->entry == NULL || assignment->key != NULL)
            continue;
        TRY(check_row(source, assignment, error));
        strings_format(rows, "%s", assignment->entry);
    }
    return OK;
}

static status none_named(const struct suite_source *source, const struct suite_section *chooser,
                         const struct strings *rows, struct error *error)
{
    SCOPED(text_free) struct text names = {0};
    for (size_t i = 0; i < rows->count; i++)
        text_add(&names, "%s%s", i > 0 ? ", " : "", rows->items[i]);
    return error_set(
        error, ERROR_ARGUMENT,
        "%s: a suite with %zu rows; expected one of them, as in %s.%s=%s, or mtil sweep %s, which runs them all: "
        "%s",
        source->file, rows->count, chooser->name, chooser->row, rows->items[0], source->file, names.data);
}

static status check_word(const char *where, const char *name, const struct strings *rows, struct error *error)
{
    for (size_t i = 0; i < rows->count; i++)
        if (name == NULL || strcmp(rows->items[i], name) == 0)
            return OK;
    return error_unknown_word(error, where, "row", name, (const char *const *)rows->items, rows->count);
}

/* Overrides may set rows of a suite without rows. */
static status check_no_row(const struct suite_source *source, struct error *error)
{
    for (size_t i = 0; i < source->count; i++) {
        const struct assignment *row = &source->assignments[i];
        if (row->section == &suite_rows_section && row->entry == NULL)
            return error_set(error, ERROR_ARGUMENT, "%s:%zu:%zu: rows: expected rows below it, found none",
                             source->file, row->line, row->column);
        if (row->section == &suite_rows_section)
            return error_set(error, ERROR_ARGUMENT, "command line: rows: the suite %s has no rows, found \"%s\"",
                             source->file, row->entry);
    }
    return OK;
}

static status choose(const struct suite_source *source, const struct strings *rows, const char **chosen,
                     struct error *error)
{
    const struct suite_section *chooser = find_chooser(source->sections);
    const struct assignment *named = chooser != NULL ? suite_source_last(source, chooser, NULL, chooser->row) : NULL;
    char where[512];
    if (named != NULL)
        suite_source_where(source, named, where, sizeof where);
    if (rows->count == 0) /* a suite stored with a run names its row and has no others */
        return named == NULL || named->line > 0
                   ? check_no_row(source, error)
                   : error_set(error, ERROR_ARGUMENT, "%s.%s: the suite %s has no rows, found \"%s\"", where,
                               chooser->row, source->file, named->value);
    if (chooser == NULL)
        return error_set(error, ERROR_ARGUMENT, "%s: rows: expected a suite without rows", source->file);
    if (named == NULL)
        return none_named(source, chooser, rows, error);
    TRY(check_word(where, named->value, rows, error));
    for (size_t i = 0; i < source->count; i++) /* of overrides */
        if (source->assignments[i].section == &suite_rows_section)
            TRY(check_word("command line: rows", source->assignments[i].entry, rows, error));
    *chosen = named->value;
    return OK;
}

status suite_rows_choose(const struct suite_source *source, const char **row, struct error *error)
{
    SCOPED(strings_free) struct strings rows = {0};
    *row = NULL;
    TRY(read_rows(&rows, source, error));
    return choose(source, &rows, row, error);
}

status suite_load_rows(struct suite_rows *rows, const char *name_or_path, const struct suite_section *sections,
                       struct error *error)
{
    const struct suite_section *chooser = find_chooser(sections);
    SCOPED(suite_file_close) struct suite_file file = {0};
    *rows = (struct suite_rows){0};
    TRY(suite_file_open(&file, name_or_path, error));
    SCOPED(suite_source_free) struct suite_source source = {.file = file.name, .sections = sections};
    status result = suite_source_read(&source, file.text, file.size, error);
    NEXT(result, read_rows(&rows->names, &source, error));
    if (result == OK && chooser != NULL)
        rows->key = path_format("%s.%s", chooser->name, chooser->row);
    if (result != OK)
        suite_rows_free(rows);
    return result;
}

void suite_rows_free(struct suite_rows *rows)
{
    strings_free(&rows->names);
    free(rows->key);
    rows->key = NULL;
}
