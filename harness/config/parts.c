/* The values of a suite, part by part. */
#include <assert.h>
#include <string.h>

#include "harness/config/internal.h"

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

bool suite_next_parent(const struct suite *suite, const char **at, const struct part **parent, const char **key)
{
    char word[KEY_LENGTH];
    if (*at == NULL || **at == 0)
        return false;
    size_t size = strcspn(*at, "|");
    assert(size < sizeof word);
    memcpy(word, *at, size);
    word[size] = 0;
    *at += size + ((*at)[size] != 0);
    char *dot = strchr(word, '.');
    if (dot != NULL)
        *dot = 0;
    *parent = suite_part(suite, word, NULL);
    assert(*parent != NULL);
    const struct option *option = dot != NULL ? options_find((*parent)->table, dot + 1) : NULL;
    assert(dot == NULL || option != NULL);
    *key = option != NULL ? option->name : NULL;
    return true;
}

const struct part *suite_parent(const struct suite *suite, const struct suite_section *section, const char *key)
{
    const struct part *parent;
    const char *only;
    for (const char *at = section->inherits; suite_next_parent(suite, &at, &parent, &only);)
        if (only != NULL ? strcmp(only, key) == 0 : options_find(parent->table, key) != NULL)
            return parent;
    return NULL;
}
