#include "harness/config/suite.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/scope.h"
#include "harness/config/internal.h"

/* --- All keys --- */

static void add(struct suite_keys *keys, const struct suite_key *key)
{
    GROW(keys->list, keys->count);
    keys->list[keys->count++] = *key;
}

static bool same_option(const struct option *a, const struct option *b)
{
    return a->type == b->type && a->minimum == b->minimum && a->maximum == b->maximum && suite_same(a->name, b->name) &&
           suite_same(a->choices, b->choices) && suite_same(a->fallback, b->fallback) && suite_same(a->help, b->help);
}

static void add_own(struct suite_keys *keys, const struct suite_section *section)
{
    for (const struct option *option = section->options; option != NULL && option->name != NULL; option++)
        add(keys, &(struct suite_key){.section = section, .option = option});
}

/* Adds the keys of earlier sections that a section has, too. */
static void add_inherited(struct suite_keys *keys, const struct suite_section *section)
{
    size_t count = keys->count;
    for (const struct suite_inherited *from = section->inherits; from->section != NULL; from++)
        for (size_t i = 0; i < count; i++) {
            struct suite_key key = {
                .section = section, .option = keys->list[i].option, .inherits = keys->list[i].section};
            if (strcmp(key.inherits->name, from->section) == 0 &&
                (from->key == NULL || strcmp(key.option->name, from->key) == 0))
                add(keys, &key);
        }
}

static bool has_key(const struct suite_keys *keys, const struct suite_section *section, size_t end, const char *name)
{
    for (size_t i = 0; i < end; i++)
        if (keys->list[i].section == section && strcmp(keys->list[i].option->name, name) == 0)
            return true;
    return false;
}

static void add_chosen(struct suite_keys *keys, const struct suite_section *section, size_t first, const char *choice)
{
    const struct option *option = NULL;
    section->chosen(choice, &option, NULL); /* does not fail for one of its choices */
    for (; option != NULL && option->name != NULL; option++) {
        size_t i = first;
        if (has_key(keys, section, first, option->name)) /* the first table's counts */
            continue;
        while (i < keys->count && !same_option(keys->list[i].option, option))
            i++;
        if (i == keys->count)
            add(keys, &(struct suite_key){.section = section, .option = option});
        text_add(&keys->list[i].with, "%s%s", keys->list[i].with.size > 0 ? ", " : "", choice);
    }
}

void suite_keys_read(struct suite_keys *keys, const struct suite_section *sections)
{
    *keys = (struct suite_keys){0};
    for (const struct suite_section *section = sections; section->name != NULL; section++) {
        add_own(keys, section);
        add_inherited(keys, section);
        size_t first = keys->count;
        for (size_t i = 0; section->choice != NULL && section->choice(i) != NULL; i++)
            add_chosen(keys, section, first, section->choice(i));
    }
}

void suite_keys_free(struct suite_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        text_free(&keys->list[i].with);
    free(keys->list);
    *keys = (struct suite_keys){0};
}

/* The row of a section's key, of any choice; NULL: there is none. inherited: it is another section's. */
static const struct option *row_of(const struct suite_section *sections, const struct suite_section *section,
                                   const char *name, bool *inherited)
{
    const struct option *option = options_find(section->options, name), *table;
    *inherited = false;
    for (const struct suite_inherited *from = section->inherits; option == NULL && from->section != NULL; from++)
        if (from->key == NULL || strcmp(from->key, name) == 0) {
            option = options_find(suite_section_find(sections, from->section)->options, name);
            *inherited = option != NULL;
        }
    for (size_t i = 0; option == NULL && section->choice != NULL && section->choice(i) != NULL; i++)
        if (section->chosen(section->choice(i), &table, NULL) == OK)
            option = options_find(table, name);
    return option;
}

bool suite_key_incidental(const struct suite_section *sections, const char *key, const char *value)
{
    bool inherited;
    for (const struct suite_section *section = sections; section->name != NULL; section++) {
        const char *own = suite_key_in(section, key), *last = strrchr(key, '.');
        if (own == NULL)
            continue;
        const struct option *option = row_of(sections, section, section->each_of != NULL ? last + 1 : own, &inherited);
        return option != NULL && !option_identifies(option, inherited ? NULL : value);
    }
    return false;
}

/* --- Words --- */

/* "seeds" for the alias "seed=seeds"; NULL: the section has no such alias. */
static const char *alias_of(const struct suite_section *section, const char *name)
{
    size_t length = strlen(name);
    bool is = section->alias != NULL && strncmp(section->alias, name, length) == 0 && section->alias[length] == '=';
    return is ? section->alias + length + 1 : NULL;
}

static char *whole_key(const struct suite_section *section, const char *key)
{
    return path_format("%s.%s", section->name, key);
}

status suite_key_find(char **key, const struct suite_section *sections, const char *name, struct error *error)
{
    const struct suite_section *found = NULL;
    const char *own = NULL;
    *key = NULL;
    for (const struct suite_section *s = sections; s->name != NULL && own == NULL; s++) {
        own = alias_of(s, name);
        found = own != NULL ? s : NULL;
    }
    for (const struct suite_section *s = sections; own == NULL && s->name != NULL; s++) {
        if (s->each_of != NULL || options_find(s->options, name) == NULL)
            continue;
        if (found != NULL)
            return error_set(error, ERROR_ARGUMENT,
                             "command line: %s is a key of %s and of %s; expected %s.%s or %s.%s", name, found->name,
                             s->name, found->name, name, s->name, name);
        found = s;
    }
    if (found == NULL)
        return OK;
    *key = whole_key(found, own != NULL ? own : name);
    return OK;
}

status suite_key_check(const struct suite *suite, const char *word, const char *key, struct error *error)
{
    const char *name = strrchr(key, '.');
    if (name == NULL || strlen(++name) != strcspn(word, "=") || strncmp(word, name, strlen(name)) != 0)
        return OK; /* a full key, or an alias */
    for (size_t i = 0; i < suite->count; i++) {
        const struct part *part = &suite->parts[i];
        if (part->entry == NULL && options_find(part->table, name) != NULL && suite_key_in(part->section, key) == NULL)
            return error_set(error, ERROR_ARGUMENT,
                             "command line: %s is a key of %.*s and, with these settings, of %s; expected %s or %s.%s",
                             name, (int)strcspn(key, "."), key, part->section->name, key, part->section->name, name);
    }
    return OK;
}

/* The key that has the whole name, one that depends on another's value ("data.parts" on data.split_by), too; NULL: none. */
static char *key_called(const struct suite_section *sections, const char *name)
{
    SCOPED(suite_keys_free) struct suite_keys keys = {0};
    char *key = NULL;
    suite_keys_read(&keys, sections);
    for (size_t i = 0; i < keys.count && key == NULL; i++)
        if (keys.list[i].section->each_of == NULL && strcmp(keys.list[i].option->name, name) == 0)
            key = whole_key(keys.list[i].section, name);
    return key;
}

char *suite_key_near(const struct suite_section *sections, const char *word, size_t *distance)
{
    enum { NAMES = 512 };
    const char *names[NAMES];
    const struct suite_section *of[NAMES];
    size_t count = 0;
    *distance = 0;
    for (const struct suite_section *s = sections; s->name != NULL; s++) {
        for (const struct option *o = s->options; s->each_of == NULL && o->name != NULL && count < NAMES; o++) {
            if (option_is_called(o, word))
                return whole_key(s, o->name);
            of[count] = s;
            names[count++] = o->name;
        }
    }
    char *called = key_called(sections, word);
    if (called != NULL)
        return called;
    const char *near = nearest_word(word, names, count);
    *distance = near != NULL ? edit_distance(word, near) : SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        if (names[i] == near)
            return whole_key(of[i], near);
    return NULL;
}
