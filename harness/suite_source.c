#include "harness/suite_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include <yaml.h>

#include "core/text.h"

enum {
    ASSIGNMENTS = 4096, /* repeated keys are found by looking at all before, so there is an end to it */
    KEY_LENGTH = 128
};

struct reader {
    struct suite_source *source;
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
    struct error *error;
};

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
    char path[2 * KEY_LENGTH + 4] = "";
    const char *section = assignment->section->name;
    if (*section != 0)
        snprintf(path, sizeof path, ": %s%s%s", section, assignment->entry != NULL ? "." : "",
                 assignment->entry != NULL ? assignment->entry : "");
    if (assignment->line == 0)
        snprintf(where, size, "command line%s", path);
    else
        snprintf(where, size, "%s:%zu:%zu%s", source->file, assignment->line, assignment->column, path);
}

/* A word of the top level that is neither a section nor a key. */
static status unknown_top_word(const struct suite_source *source, const char *where, const char *word,
                               struct error *error)
{
    const char *names[256];
    size_t count = 0, most = sizeof names / sizeof *names;
    const struct suite_section *top = suite_section_find(source->sections, "");
    for (const struct option *option = top != NULL ? top->options : NULL; option != NULL && option->name != NULL;
         option++)
        if (count < most)
            names[count++] = option->name;
    for (const struct suite_section *section = source->sections; section->name != NULL; section++)
        if (section != top && count < most)
            names[count++] = section->name;
    return error_unknown_word(error, where, top != NULL ? "section or key" : "section", word, names, count);
}

static bool same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static const struct assignment *find_earlier(const struct suite_source *source, const struct assignment *assignment)
{
    for (size_t i = 0; i < source->count; i++) {
        const struct assignment *earlier = &source->assignments[i];
        if (earlier->section == assignment->section && same(earlier->entry, assignment->entry) &&
            same(earlier->key, assignment->key))
            return earlier;
    }
    return NULL;
}

static char *copy(const char *string)
{
    return string != NULL ? strdup(string) : NULL;
}

static status no_memory(const struct suite_source *source, struct error *error)
{
    return error_set(error, ERROR_MEMORY, "%s: no memory for its values", source->file);
}

/* Appends copies of what assignment points to. */
static status add(struct suite_source *source, const struct assignment *assignment, struct error *error)
{
    if (source->count == ASSIGNMENTS)
        return error_set(error, ERROR_FORMAT, "%s: a suite has at most %d values, found more", source->file,
                         ASSIGNMENTS);
    if (source->count == source->capacity) {
        size_t capacity = source->capacity * 2 + 64;
        struct assignment *grown = realloc(source->assignments, capacity * sizeof *grown);
        if (grown == NULL)
            return no_memory(source, error);
        source->assignments = grown;
        source->capacity = capacity;
    }
    struct assignment *added = &source->assignments[source->count++];
    *added = *assignment;
    added->entry = copy(assignment->entry);
    added->key = copy(assignment->key);
    added->value = copy(assignment->value);
    if ((added->entry == NULL) != (assignment->entry == NULL) || (added->key == NULL) != (assignment->key == NULL) ||
        (added->value == NULL) != (assignment->value == NULL))
        return no_memory(source, error);
    return OK;
}

void suite_source_free(struct suite_source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        free(source->assignments[i].entry);
        free(source->assignments[i].key);
        free(source->assignments[i].value);
    }
    free(source->assignments);
    source->assignments = NULL;
    source->count = source->capacity = 0;
}

static status fail_at(struct reader *reader, yaml_mark_t mark, const char *message)
{
    return error_set(reader->error, ERROR_FORMAT, "%s:%zu:%zu: %s", reader->source->file, mark.line + 1,
                     mark.column + 1, message);
}

static status fail_here(struct reader *reader, const char *message)
{
    return fail_at(reader, reader->event.start_mark, message);
}

static status yaml_problem(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return no_memory(reader->source, reader->error);
    const char *problem = parser->problem != NULL ? parser->problem : "not YAML";
    if (parser->error == YAML_READER_ERROR)
        return error_set(reader->error, ERROR_FORMAT, "%s: at byte %zu: %s", reader->source->file,
                         parser->problem_offset, problem);
    char message[512];
    snprintf(message, sizeof message, "%s%s%s", parser->context != NULL ? parser->context : "",
             parser->context != NULL ? ": " : "", problem);
    return fail_at(reader, parser->problem_mark, message);
}

/* Goes on to the next event. What could make a small file large or ambiguous is refused here, in one place. */
static status next(struct reader *reader)
{
    yaml_event_delete(&reader->event);
    if (!yaml_parser_parse(&reader->parser, &reader->event))
        return yaml_problem(reader);
    const yaml_event_t *event = &reader->event;
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        if (event->data.scalar.length != strlen((const char *)event->data.scalar.value))
            return fail_here(reader, "a text with a NUL character");
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor != NULL || event->type == YAML_ALIAS_EVENT)
        return fail_here(reader,
                         "anchors (&) and aliases (*) are not part of a suite; write the value out, or quote the text");
    if (tag != NULL)
        return fail_here(reader, "tags (!) are not part of a suite; leave the tag out, or quote the text");
    return OK;
}

static const char *scalar(const struct reader *reader)
{
    return (const char *)reader->event.data.scalar.value;
}

/* Plain "key:" with nothing behind it, and YAML's other words for nothing. */
static bool is_null(const struct reader *reader)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(scalar(reader), words[i]) == 0)
            return true;
    return false;
}

static status read_scalar(struct reader *reader, struct text *value)
{
    if (is_null(reader))
        return fail_here(reader, "expected a value, found nothing; leave the key out for its default, or write \"\"");
    text_add(value, "%s", scalar(reader));
    return OK;
}

static status read_list(struct reader *reader, struct text *value)
{
    text_add(value, "%s", "");
    for (size_t i = 0;; i++) {
        TRY(next(reader));
        if (reader->event.type == YAML_SEQUENCE_END_EVENT)
            return OK;
        if (reader->event.type != YAML_SCALAR_EVENT)
            return fail_here(reader, "expected a list of single values, found a list or keys inside it");
        if (scalar(reader)[strcspn(scalar(reader), ", \t\n")] != 0)
            return fail_here(reader, "expected list items without commas and spaces");
        if (i > 0)
            text_add(value, ", ");
        TRY(read_scalar(reader, value));
    }
}

static status add_new(struct reader *reader, const struct assignment *assignment)
{
    const struct assignment *earlier = find_earlier(reader->source, assignment);
    if (earlier == NULL)
        return add(reader->source, assignment, reader->error);
    const char *word = assignment->key != NULL     ? assignment->key
                       : assignment->entry != NULL ? assignment->entry
                                                   : assignment->section->name;
    return error_set(reader->error, ERROR_FORMAT, "%s:%zu:%zu: \"%s\" is here twice; the first one is in line %zu",
                     reader->source->file, assignment->line, assignment->column, word, earlier->line);
}

static status read_value(struct reader *reader, struct assignment *assignment)
{
    struct text value = {0};
    status result;
    assignment->is_list = reader->event.type == YAML_SEQUENCE_START_EVENT;
    if (assignment->is_list)
        result = read_list(reader, &value);
    else if (reader->event.type == YAML_SCALAR_EVENT)
        result = read_scalar(reader, &value);
    else
        result = fail_here(reader, "expected a value or a list, found keys; too deep");
    if (result == OK && value.failed)
        result = no_memory(reader->source, reader->error);
    if (result == OK) {
        assignment->value = value.data;
        result = add_new(reader, assignment);
    }
    text_free(&value);
    return result;
}

/* At a mapping's key: copies it and goes on to its value. *end says that there was none any more. */
static status read_key(struct reader *reader, char key[KEY_LENGTH], struct assignment *assignment, bool *end)
{
    TRY(next(reader));
    *end = reader->event.type == YAML_MAPPING_END_EVENT;
    if (*end)
        return OK;
    if (reader->event.type != YAML_SCALAR_EVENT || *scalar(reader) == 0)
        return fail_here(reader, "expected a key, found something else");
    if (strlen(scalar(reader)) >= KEY_LENGTH)
        return fail_here(reader, "a key of more than 127 characters");
    strcpy(key, scalar(reader));
    assignment->line = reader->event.start_mark.line + 1;
    assignment->column = reader->event.start_mark.column + 1;
    return next(reader);
}

/* The keys below a section's or an entry's heading, which is noted first. */
static status read_keys(struct reader *reader, const struct assignment *heading)
{
    if (reader->event.type != YAML_MAPPING_START_EVENT)
        return error_set(reader->error, ERROR_FORMAT, "%s:%zu:%zu: %s: expected keys below it, found %s",
                         reader->source->file, heading->line, heading->column,
                         heading->entry != NULL ? heading->entry : heading->section->name,
                         reader->event.type == YAML_SCALAR_EVENT ? "a single value" : "a list");
    TRY(add_new(reader, heading));
    for (;;) {
        char key[KEY_LENGTH];
        bool end;
        struct assignment assignment = {.section = heading->section, .entry = heading->entry};
        TRY(read_key(reader, key, &assignment, &end));
        if (end)
            return OK;
        if (heading->section->each_of != NULL && heading->entry == NULL) {
            assignment.entry = key;
            TRY(read_keys(reader, &assignment));
        } else {
            assignment.key = key;
            TRY(read_value(reader, &assignment));
        }
    }
}

static status read_top(struct reader *reader)
{
    const struct suite_section *sections = reader->source->sections, *top = suite_section_find(sections, "");
    for (;;) {
        char key[KEY_LENGTH];
        bool end;
        struct assignment assignment = {0};
        TRY(read_key(reader, key, &assignment, &end));
        if (end)
            return OK;
        assignment.section = suite_section_find(sections, key);
        if (assignment.section != NULL) {
            TRY(read_keys(reader, &assignment));
        } else if (top != NULL && options_find(top->options, key) != NULL) {
            assignment.section = top;
            assignment.key = key;
            TRY(read_value(reader, &assignment));
        } else {
            char where[512];
            snprintf(where, sizeof where, "%s:%zu:%zu", reader->source->file, assignment.line, assignment.column);
            return unknown_top_word(reader->source, where, key, reader->error);
        }
    }
}

static status read_document(struct reader *reader)
{
    TRY(next(reader)); /* the stream's start */
    TRY(next(reader));
    if (reader->event.type == YAML_STREAM_END_EVENT)
        return error_set(reader->error, ERROR_FORMAT, "%s: expected sections such as \"%s:\", found an empty file",
                         reader->source->file, reader->source->sections->name);
    TRY(next(reader));
    if (reader->event.type != YAML_MAPPING_START_EVENT)
        return fail_here(reader, "expected sections with keys below them, found something else");
    TRY(read_top(reader));
    TRY(next(reader)); /* the document's end */
    TRY(next(reader));
    if (reader->event.type != YAML_STREAM_END_EVENT)
        return fail_here(reader, "expected one document, found another one");
    return OK;
}

status suite_source_read(struct suite_source *source, const char *text, size_t size, struct error *error)
{
    struct reader reader = {.source = source, .error = error};
    if (!yaml_parser_initialize(&reader.parser))
        return no_memory(source, error);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, size);
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    status result = read_document(&reader);
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    return result;
}

static bool is_utf8(const char *string)
{
    const utf8proc_uint8_t *p = (const utf8proc_uint8_t *)string;
    for (utf8proc_int32_t point; *p != 0;) {
        utf8proc_ssize_t used = utf8proc_iterate(p, -1, &point);
        if (used <= 0)
            return false;
        p += used;
    }
    return true;
}

/* Fills assignment from the parts of left, which is cut at its dots. */
static status split_path(const struct suite_source *source, char *left, struct assignment *assignment,
                         struct error *error)
{
    char *dot = strchr(left, '.');
    if (dot == NULL) {
        assignment->section = suite_section_find(source->sections, "");
        assignment->key = left;
        if (assignment->section != NULL && options_find(assignment->section->options, left) != NULL)
            return OK;
        if (suite_section_find(source->sections, left) != NULL)
            return error_set(error, ERROR_ARGUMENT, "command line: %s is a section; expected %s.KEY=VALUE", left, left);
        return unknown_top_word(source, "command line", left, error);
    }
    *dot = 0;
    assignment->section = *left != 0 ? suite_section_find(source->sections, left) : NULL;
    assignment->key = dot + 1;
    if (assignment->section == NULL)
        return unknown_top_word(source, "command line", left, error);
    if (assignment->section->each_of == NULL)
        return OK;
    assignment->entry = dot + 1;
    dot = strrchr(assignment->entry, '.'); /* the last one: an entry's name may hold dots, a key does not */
    if (dot == NULL)
        return error_set(error, ERROR_ARGUMENT, "command line: %s: expected %s.NAME.KEY=VALUE, found %s.%s", left, left,
                         left, assignment->entry);
    *dot = 0;
    assignment->key = dot + 1;
    return OK;
}

status suite_source_override(struct suite_source *source, const char *override, struct error *error)
{
    const char *equals = strchr(override, '=');
    if (equals == NULL || equals == override)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: expected KEY=VALUE, for example merge.every=50, found \"%s\"", override);
    if (!is_utf8(override))
        return error_set(error, ERROR_ARGUMENT, "command line: \"%s\" is not valid UTF-8", override);
    char *left = strndup(override, (size_t)(equals - override));
    if (left == NULL)
        return no_memory(source, error);
    struct assignment assignment = {0};
    status result = split_path(source, left, &assignment, error);
    if (result == OK && strlen(left) + strlen(assignment.key) >= KEY_LENGTH)
        result = error_set(error, ERROR_ARGUMENT, "command line: a key of more than %d characters", KEY_LENGTH - 1);
    if (result == OK) {
        assignment.value = (char *)equals + 1; /* add copies it */
        result = add(source, &assignment, error);
    }
    free(left);
    return result;
}
