#include "core/option.h"
#include "core/alloc.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct value {
    char *text; /* as given; of a list "a, b", however it was written */
    bool given, boolean;
    int64_t integer;
    double real;
    size_t choice, item_count;
    char **items, *item_memory;
};

struct options {
    const struct option *table;
    size_t count;
    struct value values[];
};

static size_t table_size(const struct option *table)
{
    size_t count = 0;
    while (table != NULL && table[count].name != NULL)
        count++;
    return count;
}

static void value_free(struct value *value)
{
    free(value->text);
    free(value->items);
    free(value->item_memory);
    *value = (struct value){0};
}

static status unknown_option(const struct options *options, const char *name, const char *where, struct error *error)
{
    const char *names[128], *meant = NULL;
    size_t count = 0;
    for (size_t i = 0; i < options->count && count < sizeof names / sizeof *names; i++) {
        names[count++] = options->table[i].name;
        if (meant == NULL && option_is_called(&options->table[i], name))
            meant = options->table[i].name;
    }
    if (meant == NULL)
        meant = nearest_word(name, names, count);
    return error_unknown_word_near(error, where, "key", name, meant, names, count);
}

static void split_list(struct value *value)
{
    static const char separators[] = ", \t\n";
    value->item_memory = xstrdup(value->text);
    value->items = xmalloc((strlen(value->text) / 2 + 1) * sizeof *value->items);
    char *rest, *item = strtok_r(value->item_memory, separators, &rest);
    struct text joined = {0};
    text_add(&joined, "%s", "");
    for (; item != NULL; item = strtok_r(NULL, separators, &rest)) {
        text_add(&joined, "%s%s", value->item_count > 0 ? ", " : "", item);
        value->items[value->item_count++] = item;
    }
    free(value->text);
    value->text = joined.data;
}

static status wrong_choice(const struct option *option, const char *value, const char *where, struct error *error)
{
    enum { CHOICES = 32 };
    const char *names[CHOICES];
    size_t count = 0;
    OWNED char *copy = xstrdup(option->choices);
    char *rest = NULL;
    for (char *name = strtok_r(copy, "|", &rest); name != NULL && count < CHOICES; name = strtok_r(NULL, "|", &rest))
        names[count++] = name;
    const char *nearest = nearest_word(value, names, count);
    error_set(error, ERROR_ARGUMENT, "%s: %s: expected one of %s, found \"%s\"%s%s%s", where, option->name,
              option->choices, value, nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
              nearest != NULL ? "\"?" : "");
    return ERROR_ARGUMENT;
}

static status wrong_number(const struct option *option, const char *value, const char *where, struct error *error)
{
    SCOPED(text_free) struct text range = {0};
    option_add_range(&range, option);
    error_set(error, ERROR_ARGUMENT, "%s: %s: expected a %s%s%s, found \"%s\"", where, option->name,
              option_type_name(option), range.size > 0 ? " from " : "", range.size > 0 ? range.data : "", value);
    return ERROR_ARGUMENT;
}

static status wrong_value(const struct option *option, const char *value, const char *where, struct error *error)
{
    switch (option->type) {
    case OPTION_INTEGER:
    case OPTION_REAL:
        return wrong_number(option, value, where, error);
    case OPTION_BOOLEAN:
        return error_set(error, ERROR_ARGUMENT, "%s: %s: expected true or false, found \"%s\"", where, option->name,
                         value);
    default:
        return wrong_choice(option, value, where, error);
    }
}

static bool parse_value(const struct option *option, struct value *value)
{
    bool ranged = option->minimum < option->maximum;
    switch (option->type) {
    case OPTION_INTEGER:
        if (option->choices != NULL && text_find_word(option->choices, value->text, &value->choice)) {
            value->integer = OPTION_WORD;
            return true;
        }
        return parse_integer(value->text, &value->integer) &&
               (!ranged || ((double)value->integer >= option->minimum && (double)value->integer <= option->maximum));
    case OPTION_REAL:
        return parse_real(value->text, &value->real) &&
               (!ranged || (value->real >= option->minimum && value->real <= option->maximum));
    case OPTION_BOOLEAN:
        return parse_boolean(value->text, &value->boolean);
    case OPTION_CHOICE:
        return text_find_word(option->choices, value->text, &value->choice);
    case OPTION_LIST:
    case OPTION_FILES:
        split_list(value);
        return true;
    case OPTION_TEXT:
    case OPTION_FILE:
    case OPTION_FOLDER:
        return true;
    }
    return false;
}

/* What is the default, however it is spelled, is spelled as the default: 1e-2 as 0.01, and no as false. */
static void take_default(const struct option *option, struct value *value)
{
    if (option->fallback == NULL || option->type > OPTION_BOOLEAN)
        return;
    struct value other = {.text = xstrdup(option->fallback), .given = true};
    if (!parse_value(option, &other) || other.integer != value->integer || other.real != value->real ||
        other.boolean != value->boolean || other.choice != value->choice) {
        value_free(&other);
        return;
    }
    value_free(value);
    *value = other;
}

status options_set(struct options *options, const char *name, const char *text, const char *where, struct error *error)
{
    const struct option *option = options_find(options->table, name);
    if (option == NULL)
        return unknown_option(options, name, where, error);
    struct value value = {.text = xstrdup(text), .given = true};
    if (!parse_value(option, &value)) {
        value_free(&value);
        return wrong_value(option, text, where, error);
    }
    take_default(option, &value);
    struct value *old = &options->values[option - options->table];
    value_free(old);
    *old = value;
    return OK;
}

status options_create(struct options **result, const struct option *table, struct error *error)
{
    size_t count = table_size(table);
    SCOPED(options_destroy_at)
    struct options *options = xcalloc(1, sizeof *options + count * sizeof options->values[0]);
    options->table = table;
    options->count = count;
    for (size_t i = 0; i < count; i++) {
        if (table[i].fallback == NULL)
            continue;
        TRY(options_set(options, table[i].name, table[i].fallback, "built-in default", error));
        options->values[i].given = false;
    }
    *result = TAKE(options);
    return OK;
}

void options_destroy(struct options *options)
{
    if (options == NULL)
        return;
    for (size_t i = 0; i < options->count; i++)
        value_free(&options->values[i]);
    free(options);
}

const struct option *options_find(const struct option *table, const char *name)
{
    for (const struct option *option = table; option != NULL && option->name != NULL; option++)
        if (strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

bool option_is_called(const struct option *option, const char *word)
{
    char lower[64];
    size_t length = strlen(word);
    if (option->synonyms == NULL || length >= sizeof lower)
        return false;
    for (size_t i = 0; i <= length; i++)
        lower[i] = word[i] == '-' ? '_' : (char)tolower((unsigned char)word[i]);
    return text_has_word(option->synonyms, lower);
}

const char *option_type_name(const struct option *option)
{
    static const char *const names[] = {[OPTION_INTEGER] = "whole number",
                                        [OPTION_REAL] = "number",
                                        [OPTION_BOOLEAN] = "yes or no",
                                        [OPTION_TEXT] = "text",
                                        [OPTION_FILE] = "file",
                                        [OPTION_FOLDER] = "folder",
                                        [OPTION_CHOICE] = "choice",
                                        [OPTION_LIST] = "list",
                                        [OPTION_FILES] = "files"};
    return names[option->type];
}

void option_add_range(struct text *text, const struct option *option)
{
    if (option->type == OPTION_CHOICE)
        text_add(text, "%s", option->choices);
    else if (option->minimum < option->maximum) /* 1000000000, not 1e+09: a limit is printed as it may be written */
        text_add(text, option->type == OPTION_INTEGER ? "%.0f to %.0f" : "%g to %g", option->minimum, option->maximum);
    if (option->type == OPTION_INTEGER && option->choices != NULL)
        text_add(text, "|%s", option->choices);
}

bool option_is_path(const struct option *option)
{
    return option->type == OPTION_FILE || option->type == OPTION_FOLDER || option->type == OPTION_FILES;
}

bool option_is_list(const struct option *option)
{
    return option->type == OPTION_LIST || option->type == OPTION_FILES;
}

bool option_identifies(const struct option *option, const char *value)
{
    const char *list = option->incidental;
    bool incidental = list != NULL && (strcmp(list, "*") == 0 || (value != NULL && text_has_word(list, value)));
    return !option_is_path(option) && !incidental;
}

static const struct value *value_of(const struct options *options, const char *name)
{
    const struct option *option = options_find(options->table, name);
    assert(option != NULL);
    return &options->values[option - options->table];
}

int64_t options_integer(const struct options *options, const char *name)
{
    return value_of(options, name)->integer;
}

double options_real(const struct options *options, const char *name)
{
    return value_of(options, name)->real;
}

bool options_boolean(const struct options *options, const char *name)
{
    return value_of(options, name)->boolean;
}

const char *options_text(const struct options *options, const char *name)
{
    return value_of(options, name)->text;
}

size_t options_choice(const struct options *options, const char *name)
{
    return value_of(options, name)->choice;
}

size_t options_list_size(const struct options *options, const char *name)
{
    return value_of(options, name)->item_count;
}

const char *options_list_item(const struct options *options, const char *name, size_t index)
{
    const struct value *value = value_of(options, name);
    assert(index < value->item_count);
    return value->items[index];
}

const char **options_list_items(const struct options *options, const char *name, size_t *count)
{
    *count = options_list_size(options, name);
    const char **items = xcalloc(*count + 1, sizeof *items);
    for (size_t i = 0; i < *count; i++)
        items[i] = options_list_item(options, name, i);
    return items;
}

bool options_given(const struct options *options, const char *name)
{
    return value_of(options, name)->given;
}

const char *options_as_text(const struct options *options, const char *name)
{
    const char *text = value_of(options, name)->text;
    return text != NULL ? text : "";
}

const struct option *options_table(const struct options *options)
{
    return options->table;
}

/* Whether a value of that type fits the member. */
static bool fits(enum option_type type, enum option_member member)
{
    switch (member) {
    case MEMBER_SIZE:
        return type == OPTION_INTEGER;
    case MEMBER_FLOAT:
    case MEMBER_DOUBLE:
        return type == OPTION_REAL;
    case MEMBER_BOOL:
        return type == OPTION_BOOLEAN || type == OPTION_CHOICE;
    case MEMBER_ENUM:
        return type == OPTION_CHOICE;
    default:
        return true;
    }
}

void options_fill(const struct options *options, const struct option *rows, void *members)
{
    for (const struct option *row = rows; row->name != NULL; row++) {
        const struct value *value = value_of(options, row->name);
        void *at = (char *)members + row->offset;
        assert(fits(row->type, row->member));
        switch (row->member) {
        case MEMBER_NONE:
            break;
        case MEMBER_SIZE:
            *(size_t *)at = (size_t)value->integer;
            break;
        case MEMBER_FLOAT:
            *(float *)at = (float)value->real;
            break;
        case MEMBER_DOUBLE:
            *(double *)at = value->real;
            break;
        case MEMBER_BOOL:
            *(bool *)at = value->boolean || value->choice > 0;
            break;
        case MEMBER_TEXT:
            *(const char **)at = value->text;
            break;
        case MEMBER_ENUM:
            *(unsigned *)at = (unsigned)value->choice;
            break;
        }
    }
}

static void print_choice(const char *choices, size_t position, char *text, size_t size)
{
    for (; position > 0; position--)
        choices += strcspn(choices, "|") + 1;
    snprintf(text, size, "%.*s", (int)strcspn(choices, "|"), choices);
}

void option_print(const struct option *row, const void *members, char *text, size_t size)
{
    const void *at = (const char *)members + row->offset;
    if (row->type == OPTION_BOOLEAN)
        snprintf(text, size, "%s", *(const bool *)at ? "true" : "false");
    else if (row->member == MEMBER_SIZE)
        snprintf(text, size, "%zu", *(const size_t *)at);
    else if (row->member == MEMBER_FLOAT)
        snprintf(text, size, "%.9g", (double)*(const float *)at);
    else if (row->member == MEMBER_DOUBLE)
        snprintf(text, size, "%.17g", *(const double *)at);
    else if (row->member == MEMBER_TEXT)
        snprintf(text, size, "%s", *(const char *const *)at);
    else
        print_choice(row->choices, row->member == MEMBER_BOOL ? *(const bool *)at : *(const unsigned *)at, text, size);
}
