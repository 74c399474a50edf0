/* A suite's values as YAML, so that reading them again gives the same values and the same text; and as rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/config/internal.h"
#include "results/store.h"

static bool is_plain(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", digits[] = "0123456789";
    if (strchr(letters, *text) == NULL && strchr(digits, *text) == NULL && *text != '/' && *text != '.' && *text != '_')
        return false;
    char allowed[sizeof letters + sizeof digits + 8];
    snprintf(allowed, sizeof allowed, "%s%s_./+-", letters, digits);
    return *text != 0 && text[strspn(text, allowed)] == 0 && strcasecmp(text, "null") != 0;
}

static void write_string(struct text *out, const char *string)
{
    if (is_plain(string)) {
        text_add(out, "%s", string);
        return;
    }
    SCOPED(text_free) struct text quoted = {0};
    text_add(&quoted, "\"");
    for (const char *p = string; *p != 0; p++)
        text_add(&quoted, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    text_add(&quoted, "\"");
    text_add_visible(out, quoted.data); /* YAML has the same escapes */
}

/* The shortest decimal that reads back as value. */
static void write_real(struct text *out, double value)
{
    char digits[32];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    text_add(out, "%s", digits);
}

static bool is_word(const struct options *options, const struct option *option)
{
    return option->type == OPTION_INTEGER && option->choices != NULL &&
           options_integer(options, option->name) == OPTION_WORD;
}

static void write_value(struct text *out, const struct options *options, const struct option *option)
{
    const char *name = option->name;
    switch (option->type) {
    case OPTION_INTEGER:
        if (is_word(options, option))
            text_add(out, "%s", options_as_text(options, name));
        else
            text_add(out, "%lld", (long long)options_integer(options, name));
        break;
    case OPTION_REAL:
        write_real(out, options_real(options, name));
        break;
    case OPTION_BOOLEAN:
        text_add(out, "%s", options_boolean(options, name) ? "true" : "false");
        break;
    case OPTION_TEXT:
    case OPTION_FILE:
    case OPTION_FOLDER:
    case OPTION_CHOICE:
        write_string(out, options_text(options, name));
        break;
    case OPTION_LIST:
    case OPTION_FILES:
        text_add(out, "[");
        for (size_t i = 0; i < options_list_size(options, name); i++) {
            text_add(out, "%s", i > 0 ? ", " : "");
            write_string(out, options_list_item(options, name, i));
        }
        text_add(out, "]");
        break;
    }
}

static bool same_value(const struct part *a, const struct part *b, const struct option *option)
{
    SCOPED(text_free) struct text own = {0}, theirs = {0};
    write_value(&own, a->options, option);
    write_value(&theirs, b->options, option);
    return own.data != NULL && theirs.data != NULL && strcmp(own.data, theirs.data) == 0;
}

/* Keys that nothing reads are omitted. An entry has an inherited key only if its value differs from the section's, or, at a second
 * visit, from the first one's. */
static bool is_shown(const struct suite *suite, const struct part *part, size_t index)
{
    const struct option *option = &part->table[index];
    if (!suite_part_writes(suite, part, option) || !suite_part_has(part, option))
        return false;
    if (index < part->inherited_begin || index >= part->inherited_end)
        return true;
    const struct part *parent = suite_parent(suite, part->section, option->name);
    if (!suite_part_has(parent, options_find(parent->table, option->name)))
        return true;
    const struct part *first =
        suite_same(part->first, part->entry) ? NULL : suite_part(suite, part->section->name, part->first);
    return !same_value(part, parent, option) || (first != NULL && !same_value(part, first, option));
}

void suite_write(struct text *out, const struct suite *suite, bool identity_only)
{
    const struct suite_section *heading = NULL; /* written before the first key below it */
    for (size_t i = 0; i < suite->count; i++) {
        const struct part *part = &suite->parts[i];
        bool entry_written = part->entry == NULL;
        for (size_t j = 0; part->table[j].name != NULL; j++) {
            const struct option *option = &part->table[j];
            if ((identity_only && !option_identifies(option, options_as_text(part->options, option->name))) ||
                !is_shown(suite, part, j))
                continue;
            if (heading != part->section)
                text_add(out, "%s:\n", part->section->name);
            heading = part->section;
            if (!entry_written) {
                text_add(out, "  ");
                write_string(out, part->entry);
                text_add(out, ":\n");
                entry_written = true;
            }
            text_add(out, "%s%s: ", part->entry == NULL ? "  " : "    ", option->name);
            write_value(out, part->options, option);
            text_add(out, "\n");
        }
    }
}

void suite_value(struct text *out, const struct options *options, const struct option *option)
{
    bool plain = option->type == OPTION_TEXT || option->type == OPTION_CHOICE ||
                 (option_is_path(option) && !option_is_list(option));
    if (!plain)
        write_value(out, options, option);
    else if (options_text(options, option->name) != NULL)
        text_add(out, "%s", options_text(options, option->name));
}

static struct setting_row make_setting(const struct part *part, const struct option *option)
{
    static const char *const types[] = {
        [OPTION_INTEGER] = "integer", [OPTION_REAL] = "real", [OPTION_BOOLEAN] = "boolean",
        [OPTION_TEXT] = "text",       [OPTION_FILE] = "text", [OPTION_FOLDER] = "text",
        [OPTION_CHOICE] = "text",     [OPTION_LIST] = "list", [OPTION_FILES] = "list"};
    struct text key = {0}, value = {0};
    text_add(&key, "%s.", part->section->name);
    if (part->entry != NULL)
        text_add(&key, "%s.", part->entry);
    text_add(&key, "%s", option->name);
    suite_value(&value, part->options, option);
    return (struct setting_row){
        .key = key.data, .value = value.data, .type = is_word(part->options, option) ? "text" : types[option->type]};
}

void suite_settings(const struct suite *suite, struct setting_row **rows, size_t *count)
{
    *rows = NULL;
    *count = 0;
    for (size_t i = 0; i < suite->count; i++)
        for (size_t j = 0; suite->parts[i].table[j].name != NULL; j++) {
            if (!is_shown(suite, &suite->parts[i], j))
                continue;
            GROW(*rows, *count);
            (*rows)[(*count)++] = make_setting(&suite->parts[i], &suite->parts[i].table[j]);
        }
}

void suite_settings_free(struct setting_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((char *)rows[i].key);
        free((char *)rows[i].value);
    }
    free(rows);
}
