#include "harness/config/suite.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/config/internal.h"

enum {
    NAMES = 256 /* names in a list that has an entry each */
};

/* Of a section (entry NULL) or of one of its entries; NULL: there is none. */
const struct part *suite_part(const struct suite *suite, const char *section, const char *entry)
{
    for (size_t i = 0; i < suite->count; i++)
        if (strcmp(suite->parts[i].section->name, section) == 0 && suite_same(suite->parts[i].entry, entry))
            return &suite->parts[i];
    return NULL;
}

bool suite_part_has(const struct part *part, const struct option *option)
{
    return option->fallback != NULL || options_given(part->options, option->name);
}

const struct part *suite_parent(const struct suite *suite, const struct suite_section *section, const char *key)
{
    for (const struct suite_inherited *from = section->inherits; from->section != NULL; from++) {
        const struct part *parent = suite_part(suite, from->section, NULL);
        if (from->key != NULL ? strcmp(from->key, key) == 0 : options_find(parent->table, key) != NULL)
            return parent;
    }
    return NULL;
}

/* The last value that the source gives to a key of a section without entries, "data.order"; NULL: none. */
static const struct assignment *last_given(const struct suite_source *source, const char *name)
{
    for (const struct suite_section *section = source->sections; section->name != NULL; section++)
        if (suite_key_in(section, name) != NULL)
            return suite_source_last(source, section, NULL, suite_key_in(section, name));
    return NULL;
}

/* The option's default, which a choice elsewhere may replace. */
static const char *default_of(const struct suite_source *source, const struct suite_section *section,
                              const struct option *option)
{
    const struct assignment *given = section->preset_by != NULL ? last_given(source, section->preset_by) : NULL;
    const char *preset = given != NULL ? section->preset(given->value, section->name, option->name) : NULL;
    return preset != NULL ? preset : option->fallback;
}

/* The table of the part's choice; NULL: none. */
static status find_chosen(const struct suite_source *source, const struct part *part, const struct option **table,
                          struct error *error)
{
    const struct suite_section *section = part->section;
    *table = NULL;
    if (section->chooser == NULL)
        return OK;
    const struct option *chooser = options_find(section->options, section->chooser);
    assert(chooser != NULL);
    const struct assignment *assignment = suite_source_last(source, section, part->entry, section->chooser);
    if (assignment == NULL)
        assignment = suite_source_last(source, section, part->first, section->chooser);
    const char *name = chooser->fallback != NULL ? default_of(source, section, chooser) : part->first;
    if (assignment != NULL)
        name = assignment->value;
    if (name == NULL || section->chosen(name, table, error) == OK)
        return OK;
    if (assignment == NULL)
        return error_context(error, "%s: %s", source->file, section->name);
    char where[512];
    suite_source_where(source, assignment, where, sizeof where);
    return error_context(error, "%s", where);
}

static void append_options(struct option *table, size_t *count, const struct option *more)
{
    for (; more != NULL && more->name != NULL; more++)
        if (options_find(table, more->name) == NULL)
            table[(*count)++] = *more;
}

static size_t count_options(const struct option *table)
{
    size_t count = 0;
    while (table != NULL && table[count].name != NULL)
        count++;
    return count;
}

static size_t count_inherited(const struct suite *suite, const struct suite_section *section)
{
    size_t count = 0;
    for (const struct suite_inherited *from = section->inherits; from->section != NULL; from++)
        count += from->key != NULL ? 1 : count_options(suite_part(suite, from->section, NULL)->table);
    return count;
}

/* An inherited key is written where it differs from the section's value, so that it identifies a run with any value. */
static void append_inherited(const struct suite *suite, struct part *part, size_t *count)
{
    part->inherited_begin = *count;
    for (const struct suite_inherited *from = part->section->inherits; from->section != NULL; from++) {
        const struct option *table = suite_part(suite, from->section, NULL)->table;
        const struct option one[2] = {from->key != NULL ? *options_find(table, from->key) : (struct option){0}};
        append_options(part->table, count, from->key != NULL ? one : table);
    }
    part->inherited_end = *count;
    for (struct option *option = part->table + part->inherited_begin; option < part->table + *count; option++) {
        const struct part *parent = suite_parent(suite, part->section, option->name);
        option->fallback = suite_part_has(parent, option) ? options_as_text(parent->options, option->name) : NULL;
        option->incidental = option_identifies(option, NULL) ? NULL : option->incidental;
    }
}

/* Puts the free keys that the source has into the place of the key that allows them, by name. */
static void append_free(const struct suite_source *source, struct part *part, size_t *count)
{
    const char *free = part->section->free;
    const struct option *allowed = free != NULL ? options_find(part->table, free) : NULL;
    if (allowed == NULL)
        return;
    struct option key = *allowed;
    size_t length = strlen(free), at = (size_t)(allowed - part->table);
    memmove(part->table + at, part->table + at + 1, (*count - at) * sizeof *part->table);
    --*count;
    for (size_t i = 0; i < source->count; i++) {
        const struct assignment *a = &source->assignments[i];
        if (a->section == part->section && a->key != NULL && strncmp(a->key, free, length) == 0 &&
            a->key[length] == '.' && a->key[length + 1] != 0)
            strings_format(&part->free, "%s", a->key);
    }
    strings_sort(&part->free);
    for (size_t i = 0; i < part->free.count; i++) {
        key.name = part->free.items[i];
        append_options(part->table, count, (const struct option[]){key, {0}});
    }
}

/* Joins a part's tables into one. Inherited keys default to the parents' values, an entry's chooser and
 * its section's `named` to its name. A key in two tables belongs to the first. */
static void make_table(const struct suite *suite, const struct suite_source *source, struct part *part,
                       const struct option *chosen)
{
    const struct suite_section *section = part->section;
    size_t most =
        count_options(section->options) + count_inherited(suite, section) + count_options(chosen) + source->count + 1;
    part->table = xcalloc(most, sizeof *part->table);
    size_t count = 0;
    append_options(part->table, &count, section->options);
    append_inherited(suite, part, &count);
    append_options(part->table, &count, chosen);
    append_free(source, part, &count);
    for (size_t i = 0; i < count; i++)
        if (part->table[i].fallback == NULL &&
            (suite_same(part->table[i].name, section->chooser) || suite_same(part->table[i].name, section->named)))
            part->table[i].fallback = part->first;
}

static status assign(const struct suite_source *source, struct part *part, const char *entry, struct error *error)
{
    for (size_t i = 0; i < source->count; i++) {
        const struct assignment *assignment = &source->assignments[i];
        if (assignment->section != part->section || !suite_same(assignment->entry, entry) || assignment->key == NULL)
            continue;
        char where[512];
        suite_source_where(source, assignment, where, sizeof where);
        const struct option *option = options_find(part->table, assignment->key);
        if (option != NULL && assignment->is_list && !option_is_list(option))
            return error_set(error, ERROR_ARGUMENT, "%s: %s: expected a single value, found a list", where,
                             option->name);
        TRY(options_set(part->options, assignment->key, assignment->value, where, error));
    }
    return OK;
}

char *suite_first_visit(const char *entry)
{
    size_t length = strlen(entry), name = strcspn(entry, "@"),
           digits = name < length ? strspn(entry + name + 1, "0123456789") : 0;
    return xstrndup(entry, name > 0 && digits > 0 && name + 1 + digits == length ? name : length);
}

/* Adds the values of a section (entry NULL) or of one of its entries to the suite. */
static status resolve(struct suite *suite, const struct suite_source *source, const struct suite_section *section,
                      const char *entry, struct error *error)
{
    GROW(suite->parts, suite->count);
    struct part *part = &suite->parts[suite->count++];
    *part = (struct part){.section = section};
    if (entry != NULL) {
        part->entry = xstrdup(entry);
        part->first = suite_first_visit(entry);
    }
    const struct option *chosen;
    TRY(find_chosen(source, part, &chosen, error));
    make_table(suite, source, part, chosen);
    for (size_t i = 0; part->table[i].name != NULL; i++)
        part->table[i].fallback = default_of(source, section, &part->table[i]);
    TRY(options_create(&part->options, part->table, error));
    if (!suite_same(part->first, part->entry))
        TRY(assign(source, part, part->first, error));
    return assign(source, part, part->entry, error);
}

/* The list that section->each_of names: its values and its key. */
static const struct options *find_list(const struct suite *suite, const struct suite_section *section, const char **key)
{
    for (size_t i = 0; i < suite->count; i++)
        if ((*key = suite_key_in(suite->parts[i].section, section->each_of)) != NULL)
            return suite->parts[i].options;
    assert(!"each_of names a list of a section before this one");
    return NULL;
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *p = list; *p != 0;) {
        size_t span = strcspn(p, ", \t\n");
        if (span == length && memcmp(p, word, span) == 0)
            return true;
        p += span + (p[span] != 0);
    }
    return false;
}

/* An override may remove an entry from the list, so an entry is a mistake only if the list never had it. */
static bool ever_listed(const struct suite_source *source, const struct suite_section *section,
                        const struct options *list, const char *key, const char *entry)
{
    const struct option *option = options_find(options_table(list), key);
    if (option->fallback != NULL && has_word(option->fallback, entry))
        return true;
    for (size_t i = 0; i < source->count; i++) {
        const struct assignment *assignment = &source->assignments[i];
        if (assignment->entry == NULL &&
            suite_same(assignment->key, suite_key_in(assignment->section, section->each_of)) &&
            assignment->key != NULL && has_word(assignment->value, entry))
            return true;
    }
    return false;
}

static status check_entries(const struct suite_source *source, const struct suite_section *section,
                            const struct options *list, const char *key, struct error *error)
{
    const char *names[NAMES];
    size_t count = options_list_size(list, key);
    for (size_t i = 0; i < count && i < NAMES; i++)
        names[i] = options_list_item(list, key, i);
    for (size_t i = 0; i < source->count; i++) {
        const struct assignment *assignment = &source->assignments[i];
        if (assignment->section != section || assignment->entry == NULL ||
            ever_listed(source, section, list, key, assignment->entry))
            continue;
        char where[512], kind[128];
        struct assignment heading = {.section = section, .line = assignment->line, .column = assignment->column};
        suite_source_where(source, &heading, where, sizeof where);
        snprintf(kind, sizeof kind, "name (not in %s)", section->each_of);
        return error_unknown_word(error, where, kind, assignment->entry, names, count < NAMES ? count : NAMES);
    }
    return OK;
}

/* Names appear in messages, file names and spreadsheet cells. */
status suite_check_name(const char *where, const char *kind, const char *name, struct error *error)
{
    if (text_is_visible(name) && strchr("=+-@", *name) == NULL)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "%s: %s \"%s\": expected a name of printable characters that does not begin with =, +, - or @",
                     where, kind, name);
}

static status check_names(const struct suite_source *source, const struct suite_section *section,
                          const struct options *list, const char *key, struct error *error)
{
    char where[512]; /* of the list's current value */
    const struct assignment *last = last_given(source, section->each_of);
    snprintf(where, sizeof where, "%s", source->file);
    if (last != NULL)
        suite_source_where(source, last, where, sizeof where);
    for (size_t i = 0; i < options_list_size(list, key); i++)
        TRY(suite_check_name(where, key, options_list_item(list, key, i), error));
    return OK;
}

static status resolve_entries(struct suite *suite, const struct suite_source *source,
                              const struct suite_section *section, struct error *error)
{
    const char *key;
    const struct options *list = find_list(suite, section, &key);
    TRY(check_names(source, section, list, key, error));
    TRY(check_entries(source, section, list, key, error));
    size_t count = options_list_size(list, key);
    if (count > NAMES)
        return error_set(error, ERROR_ARGUMENT, "%s: %s: at most %d names, found %zu", source->file, section->each_of,
                         NAMES, count);
    for (size_t i = 0; i < count; i++) {
        const char *name = options_list_item(list, key, i);
        if (suite_part(suite, section->name, name) != NULL)
            return error_set(error, ERROR_ARGUMENT,
                             "%s: %s: \"%s\" is repeated; names must differ, a second visit is called %s@2",
                             source->file, section->each_of, name, name);
        TRY(resolve(suite, source, section, name, error));
    }
    return OK;
}

static void write_down(struct suite *suite)
{
    SCOPED(text_free) struct text identity = {0};
    suite_write(&suite->text, suite, false);
    suite_write(&identity, suite, true);
    digest_text(identity.data != NULL ? identity.data : "", suite->hash);
}

static status build(struct suite *suite, const struct suite_source *source, struct error *error)
{
    suite->name = path_stem(source->file);
    TRY(suite_check_name(source->file, "suite", suite->name, error));
    for (const struct suite_section *section = suite->sections; section->name != NULL; section++)
        TRY(section->each_of != NULL ? resolve_entries(suite, source, section, error)
                                     : resolve(suite, source, section, NULL, error));
    write_down(suite);
    return OK;
}

static status add_overrides(struct suite_source *source, const char *const *overrides, size_t count,
                            struct error *error)
{
    for (size_t i = 0; i < count; i++)
        TRY(suite_source_override(source, overrides[i], error));
    return OK;
}

/* Overrides may name the row, and replace its values. */
static status read_source(struct suite_source *source, const char *text, size_t size, const char *const *overrides,
                          size_t override_count, struct error *error)
{
    const char *row;
    TRY(suite_source_read(source, text, size, error));
    size_t own = source->count;
    TRY(add_overrides(source, overrides, override_count, error));
    size_t all = source->count;
    TRY(suite_rows_choose(source, &row, error));
    if (row == NULL)
        return OK;
    TRY(suite_source_use_row(source, row, error));
    suite_source_remove(source, own, all); /* they come behind the row */
    return add_overrides(source, overrides, override_count, error);
}

status suite_parse(struct suite **result, const char *text, size_t size, const char *file,
                   const struct suite_section *sections, const char *const *overrides, size_t override_count,
                   struct error *error)
{
    SCOPED(suite_source_free) struct suite_source source = {.file = file, .sections = sections};
    SCOPED(suite_destroy_at) struct suite *suite = xcalloc(1, sizeof *suite);
    suite->sections = sections;
    TRY(read_source(&source, text, size, overrides, override_count, error));
    TRY(build(suite, &source, error));
    *result = TAKE(suite);
    return OK;
}

/* The first override that changes by itself what the stored suite computes, or is wrong by itself. */
static const char *changing_override(const struct suite *stored, const char *text, const char *name,
                                     const struct suite_section *sections, const char *const *overrides, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++) {
        struct error error;
        SCOPED(suite_destroy_at) struct suite *one = NULL;
        bool same = suite_parse(&one, text, strlen(text), name, sections, overrides + i, 1, &error) == OK &&
                    strcmp(stored->hash, one->hash) == 0;
        if (!same)
            return overrides[i];
    }
    return overrides[count - 1];
}

status suite_parse_stored(struct suite **suite, const char *text, const char *name,
                          const struct suite_section *sections, const char *const *overrides, size_t override_count,
                          struct error *error)
{
    SCOPED(suite_destroy_at) struct suite *stored = NULL;
    TRY(suite_parse(&stored, text, strlen(text), name, sections, NULL, 0, error));
    TRY(suite_parse(suite, text, strlen(text), name, sections, overrides, override_count, error));
    if (strcmp(stored->hash, (*suite)->hash) != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: expected settings that do not change what is computed, such as data.root=… "
                         "or run.threads=2, found %s",
                         changing_override(stored, text, name, sections, overrides, override_count));
    return OK;
}

status suite_load(struct suite **suite, const char *name_or_path, const struct suite_section *sections,
                  const char *const *overrides, size_t override_count, struct error *error)
{
    SCOPED(suite_file_close) struct suite_file file = {0};
    TRY(suite_file_open(&file, name_or_path, error));
    return suite_parse(suite, file.text, file.size, file.name, sections, overrides, override_count, error);
}

void suite_destroy(struct suite *suite)
{
    if (suite == NULL)
        return;
    for (size_t i = 0; i < suite->count; i++) {
        free(suite->parts[i].entry);
        free(suite->parts[i].first);
        options_destroy(suite->parts[i].options);
        free(suite->parts[i].table);
        strings_free(&suite->parts[i].free);
    }
    free(suite->parts);
    free(suite->name);
    text_free(&suite->text);
    free(suite);
}

const struct options *suite_options(const struct suite *suite, const char *section)
{
    const struct part *part = suite_part(suite, section, NULL);
    assert(part != NULL);
    return part->options;
}

const struct options *suite_entry(const struct suite *suite, const char *section, const char *name)
{
    const struct part *part = suite_part(suite, section, name);
    return part != NULL ? part->options : NULL;
}

const char *suite_name(const struct suite *suite)
{
    return suite->name;
}

const char *suite_text(const struct suite *suite)
{
    return suite->text.data != NULL ? suite->text.data : "";
}

const char *suite_settings_hash(const struct suite *suite)
{
    return suite->hash;
}
