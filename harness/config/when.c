/* Which keys are read with a suite's values: conditions of rows and sections (core/option.h), and what the sections' owners say. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/config/internal.h"

/* The next word of a condition; false at its end. */
static bool next_word(const char **at, char word[KEY_LENGTH])
{
    *at += strspn(*at, " ");
    size_t size = strcspn(*at, " ");
    snprintf(word, KEY_LENGTH, "%.*s", (int)size, *at);
    *at += size;
    return size > 0;
}

/* Whether "none|by_score_*" has the value; a star stands for any end. */
static bool has_value(const char *list, const char *value)
{
    for (size_t size; *list != 0; list += size + (list[size] != 0)) {
        size = strcspn(list, "|");
        bool open = size > 0 && list[size - 1] == '*';
        if (strncmp(list, value, open ? size - 1 : size) == 0 && (open || value[size] == 0))
            return true;
    }
    return false;
}

/* Of a list, whether one of its items is among the values. */
static bool is_one_of(const struct options *options, const struct option *option, const char *values)
{
    bool found = false;
    SCOPED(text_free) struct text value = {0};
    if (option_is_list(option)) {
        for (size_t i = 0; !found && i < options_list_size(options, option->name); i++)
            found = has_value(values, options_list_item(options, option->name, i));
        return found;
    }
    suite_value(&value, options, option);
    found = value.data != NULL && has_value(values, value.data);
    return found;
}

/* The row of a word's key and its part, which is at first that of the condition; the word is cut into its key and *values. */
static const struct option *row_of(const struct suite *suite, const struct part **part, char *word, char **values,
                                   bool *negated)
{
    char *dot = strchr(word, '.');
    *values = strchr(word, '=');
    assert(*values != NULL);
    *negated = (*values)[-1] == '!';
    (*values)[*negated ? -1 : 0] = 0;
    ++*values;
    if (dot != NULL) {
        *dot = 0;
        *part = suite_part(suite, word, NULL);
    }
    assert(*part != NULL);
    return options_find((*part)->table, dot != NULL ? dot + 1 : word);
}

/* "mixup!=0", "adapter.routing=per_token"; false for a key that the suite lacks, or that nothing reads itself. */
static bool word_holds(const struct suite *suite, const struct part *part, const struct option *of, char *word)
{
    char *values;
    bool negated;
    const struct option *option = row_of(suite, &part, word, &values, &negated);
    return option != NULL && (option == of || suite_part_reads(suite, part, option)) &&
           is_one_of(part->options, option, values) != negated;
}

/* A condition of `of`, a row of the part, or of a section (NULL); when NULL: it holds always. */
static bool holds(const struct suite *suite, const struct part *part, const struct option *of, const char *when)
{
    char word[KEY_LENGTH];
    bool all = true;
    while (when != NULL && next_word(&when, word))
        if (strcmp(word, "or") != 0)
            all = all && (strcmp(word, "and") == 0 || word_holds(suite, part, of, word));
        else if (all)
            break;
        else
            all = true;
    return all;
}

/* The section that owns the row: of an inherited key, the one that it comes from. */
static const struct part *owner_of(const struct suite *suite, const struct part *part, const struct option *option)
{
    size_t index = (size_t)(option - part->table);
    bool inherited = index >= part->inherited_begin && index < part->inherited_end;
    return inherited ? suite_parent(suite, part->section, option->name) : part;
}

static bool section_reads(const struct suite *suite, const struct part *part, const struct option *option)
{
    const struct part *owner = owner_of(suite, part, option);
    const struct suite_section *section = owner->section;
    return holds(suite, owner, NULL, section->when) &&
           (section->used == NULL || section->used(suite, section->name, option->name));
}

bool suite_part_reads(const struct suite *suite, const struct part *part, const struct option *option)
{
    return section_reads(suite, part, option) && holds(suite, part, option, option->when);
}

bool suite_part_writes(const struct suite *suite, const struct part *part, const struct option *option)
{
    return option->written ? section_reads(suite, part, option) : suite_part_reads(suite, part, option);
}

/* The part that a key belongs to, "tasks.dtd" of "tasks.dtd.batch"; NULL: the suite has none. */
static const struct part *part_of(const struct suite *suite, const char *key)
{
    for (size_t i = 0; i < suite->count; i++) {
        const struct part *part = &suite->parts[i];
        const char *own = suite_key_in(part->section, key), *last = strrchr(key, '.');
        size_t length = part->entry != NULL ? strlen(part->entry) : 0;
        if (own != NULL && (part->entry == NULL || (own + length == last && memcmp(own, part->entry, length) == 0)))
            return part;
    }
    return NULL;
}

/* "training.mixup!=0" of "mixup!=0". */
static void add_condition(struct text *text, const char *section, const char *when)
{
    char word[KEY_LENGTH];
    while (next_word(&when, word)) {
        size_t key = strcspn(word, "!=");
        bool own = word[key] != 0 && memchr(word, '.', key) == NULL;
        text_add(text, "%s%s%s%s", text->size > 0 ? " " : "", own ? section : "", own ? "." : "", word);
    }
}

/* What would make something read the row; nothing where that is a matter of the method. A key that decides and that nothing
 * reads itself comes first. */
static void add_needed(struct text *needed, const struct suite *suite, const struct part *part,
                       const struct option *option)
{
    char word[KEY_LENGTH], *values;
    bool negated;
    if (!section_reads(suite, part, option)) {
        const struct suite_section *section = owner_of(suite, part, option)->section;
        if (section->when != NULL && (section->used == NULL || section->used(suite, section->name, option->name)))
            add_condition(needed, section->name, section->when);
        return;
    }
    const char *when = strstr(option->when, " or ") == NULL ? option->when : ""; /* of alternatives all are named */
    while (next_word(&when, word)) {
        const struct part *of = part;
        const struct option *deciding = strchr(word, '=') != NULL ? row_of(suite, &of, word, &values, &negated) : NULL;
        if (deciding != NULL && deciding != option && !suite_part_reads(suite, of, deciding)) {
            add_needed(needed, suite, of, deciding);
            return;
        }
    }
    OWNED char *section = part->entry != NULL ? path_format("%s.%s", part->section->name, part->entry) : NULL;
    add_condition(needed, section != NULL ? section : part->section->name, option->when);
}

/* "shared_classes" of "shared_classes=true": its absence is a value, too. */
static bool decides_itself(const struct option *option)
{
    size_t length = strlen(option->name);
    return option->when != NULL && strncmp(option->when, option->name, length) == 0 &&
           strchr("=!", option->when[length]) != NULL;
}

bool suite_reads(const struct suite *suite, const char *key, struct text *needed)
{
    const struct part *part = part_of(suite, key);
    for (const struct suite_section *section = suite->sections; part == NULL && section->name != NULL; section++)
        if (suite_key_in(section, key) != NULL)
            return false; /* of a task that is not there */
    if (part == NULL)
        return true;
    const char *name = part->entry != NULL ? strrchr(key, '.') + 1 : suite_key_in(part->section, key);
    const struct option *option = options_find(part->table, name);
    bool read = option == NULL || suite_part_writes(suite, part, option) || /* or refused unless it has its default */
                (decides_itself(option) && section_reads(suite, part, option));
    if (!read && needed != NULL)
        add_needed(needed, suite, part, option);
    return read;
}

/* Whether an entry, "tasks.dtd", reads the key of this section, whose value is its default. */
static bool entry_reads(const struct suite *suite, const struct part *part, const char *key)
{
    for (size_t i = 0; i < suite->count; i++) {
        const struct part *entry = &suite->parts[i];
        const struct option *option = entry->entry != NULL ? options_find(entry->table, key) : NULL;
        if (option != NULL && owner_of(suite, entry, option) == part && suite_part_reads(suite, entry, option))
            return true;
    }
    return false;
}

static status refuse(const struct suite *suite, const struct part *part, const struct option *option,
                     const char *fallback, struct error *error)
{
    SCOPED(text_free) struct text key = {0}, needed = {0};
    text_add(&key, "%s.%s%s%s", part->section->name, part->entry != NULL ? part->entry : "",
             part->entry != NULL ? "." : "", option->name);
    add_needed(&needed, suite, part, option);
    return error_set(error, ERROR_ARGUMENT, "suite: %s is %s, but it is read only with %s; set that, or %s=%s",
                     key.data, options_as_text(part->options, option->name), needed.data, key.data, fallback);
}

/* The default of the row itself, whatever another key presets; of an inherited key, the section's value. */
static const char *own_default(const struct suite *suite, const struct part *part, const struct option *option)
{
    const struct option *own =
        owner_of(suite, part, option) == part ? options_find(part->section->options, option->name) : NULL;
    return own != NULL ? own->fallback : option->fallback;
}

status suite_check_unread(const struct suite *suite, struct error *error)
{
    for (size_t i = 0; i < suite->count; i++)
        for (const struct option *option = suite->parts[i].table; option->name != NULL; option++) {
            const struct part *part = &suite->parts[i];
            if (!option->written || !section_reads(suite, part, option) || suite_part_reads(suite, part, option) ||
                entry_reads(suite, part, option->name))
                continue;
            const char *fallback = own_default(suite, part, option),
                       *value = options_as_text(part->options, option->name);
            double a, b;
            if (strcmp(value, fallback) != 0 && !(parse_real(value, &a) && parse_real(fallback, &b) && a == b))
                return refuse(suite, part, option, fallback, error);
        }
    return OK;
}
