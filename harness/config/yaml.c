/* Parses the YAML of a suite event by event. Anything but sections, entries, keys, values and flat lists is an
 * immediate error, so that no file costs more than its size. */
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/config/internal.h"

struct reader {
    struct suite_source *source;
    const char *text;
    size_t size;
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
    struct error *error;
};

static status fail_at(struct reader *reader, yaml_mark_t mark, const char *message)
{
    return error_set(reader->error, ERROR_ARGUMENT, "%s:%zu:%zu: %s", reader->source->file, mark.line + 1,
                     mark.column + 1, message);
}

static status fail_here(struct reader *reader, const char *message)
{
    return fail_at(reader, reader->event.start_mark, message);
}

/* Whether the indentation of the line contains a tab. */
static bool begins_with_tab(const struct reader *reader, size_t line)
{
    const char *at = reader->text, *end = reader->text + reader->size;
    for (; line > 0 && at != end; line--) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline != NULL ? newline + 1 : end;
    }
    while (at != end && *at == ' ')
        at++;
    return at != end && *at == '\t';
}

static status no_memory(const struct suite_source *source, struct error *error)
{
    return error_set(error, ERROR_MEMORY, "%s: no memory to read its YAML", source->file);
}

static status yaml_problem(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return no_memory(reader->source, reader->error);
    const char *problem = parser->problem != NULL ? parser->problem : "not YAML";
    if (parser->error == YAML_READER_ERROR)
        return error_set(reader->error, ERROR_ARGUMENT, "%s: at byte %zu: %s", reader->source->file,
                         parser->problem_offset, problem);
    if (begins_with_tab(reader, parser->problem_mark.line))
        return fail_at(reader, parser->problem_mark, "a tab, which YAML does not allow as indentation; use spaces");
    char message[512];
    snprintf(message, sizeof message, "%s%s%s", parser->context != NULL ? parser->context : "",
             parser->context != NULL ? ": " : "", problem);
    return fail_at(reader, parser->problem_mark, message);
}

/* Reads the next event. Constructs that could make a small file large or ambiguous are refused here. */
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

/* "key:" without a value, and YAML's other spellings of null. */
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
    const struct assignment *earlier =
        suite_source_last(reader->source, assignment->section, assignment->entry, assignment->key);
    if (earlier == NULL)
        return suite_source_add(reader->source, assignment, reader->error);
    const char *word = assignment->key != NULL     ? assignment->key
                       : assignment->entry != NULL ? assignment->entry
                                                   : assignment->section->name;
    return error_set(reader->error, ERROR_ARGUMENT, "%s:%zu:%zu: \"%s\" is repeated; the first one is in line %zu",
                     reader->source->file, assignment->line, assignment->column, word, earlier->line);
}

/* At a mapping's key: copies it and moves on to its value. *end: the mapping has ended. */
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

static status read_value(struct reader *reader, struct assignment *assignment);

/* Free keys below "options:" are keys "options.rate". */
static status read_free(struct reader *reader, const struct assignment *heading)
{
    for (;;) {
        char key[KEY_LENGTH], whole[2 * KEY_LENGTH];
        bool end;
        struct assignment assignment = {.section = heading->section, .key = whole};
        TRY(read_key(reader, key, &assignment, &end));
        if (end)
            return OK;
        snprintf(whole, sizeof whole, "%s.%s", heading->key, key);
        if (strlen(whole) >= KEY_LENGTH)
            return fail_here(reader, "a key of more than 127 characters");
        TRY(read_value(reader, &assignment));
    }
}

static status read_value(struct reader *reader, struct assignment *assignment)
{
    SCOPED(text_free) struct text value = {0};
    status result;
    if (reader->event.type == YAML_MAPPING_START_EVENT && suite_same(assignment->key, assignment->section->free))
        return read_free(reader, assignment);
    assignment->is_list = reader->event.type == YAML_SEQUENCE_START_EVENT;
    if (assignment->is_list)
        result = read_list(reader, &value);
    else if (reader->event.type == YAML_SCALAR_EVENT)
        result = read_scalar(reader, &value);
    else
        result = fail_here(reader, assignment->section == &suite_rows_section
                                       ? "expected a value, found keys; a row has whole keys, as in method.name: lwf"
                                       : "expected a value or a list, found keys; too deep");
    if (result == OK) {
        assignment->value = value.data;
        result = add_new(reader, assignment);
    }
    return result;
}

/* The keys below the heading of a section or entry, which is recorded first. */
static status read_keys(struct reader *reader, const struct assignment *heading)
{
    if (reader->event.type != YAML_MAPPING_START_EVENT)
        return error_set(reader->error, ERROR_ARGUMENT, "%s:%zu:%zu: %s: expected keys below it, found %s",
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

/* "use: SUITE" */
static status read_use(struct reader *reader, const struct assignment *place)
{
    struct suite_source *source = reader->source;
    if (source->use != NULL)
        return fail_here(reader, "\"use\" is repeated; a suite uses one other");
    if (reader->event.type != YAML_SCALAR_EVENT || is_null(reader))
        return fail_here(reader, "expected the name of a suite that ships");
    source->use = xstrdup(scalar(reader));
    source->use_line = place->line;
    return OK;
}

static status unknown_key(const struct reader *reader, const struct assignment *place, const char *key)
{
    char where[512];
    snprintf(where, sizeof where, "%s:%zu:%zu", reader->source->file, place->line, place->column);
    for (const struct suite_section *section = reader->source->sections; section->name != NULL; section++)
        if (suite_key_in(section, key) != NULL)
            return error_set(reader->error, ERROR_ARGUMENT,
                             "%s: \"%s\" is a key as a command line has it; expected \"%s:\" with \"%s\" below it",
                             where, key, section->name, suite_key_in(section, key));
    return suite_source_unknown(reader->source, where, key, reader->error);
}

static status read_top(struct reader *reader)
{
    for (;;) {
        char key[KEY_LENGTH];
        bool end;
        struct assignment assignment = {0};
        TRY(read_key(reader, key, &assignment, &end));
        if (end)
            return OK;
        assignment.section = strcmp(key, suite_rows_section.name) == 0
                                 ? &suite_rows_section
                                 : suite_section_find(reader->source->sections, key);
        if (assignment.section != NULL) {
            TRY(read_keys(reader, &assignment));
        } else if (strcmp(key, "use") == 0) {
            TRY(read_use(reader, &assignment));
        } else {
            return unknown_key(reader, &assignment, key);
        }
    }
}

static status read_document(struct reader *reader)
{
    TRY(next(reader)); /* the stream's start */
    TRY(next(reader));
    if (reader->event.type == YAML_STREAM_END_EVENT)
        return error_set(reader->error, ERROR_ARGUMENT, "%s: expected sections such as \"%s:\", found an empty file",
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

status suite_source_read_alone(struct suite_source *source, const char *text, size_t size, struct error *error)
{
    text_skip_mark(&text, &size);
    struct reader reader = {.source = source, .text = text, .size = size, .error = error};
    if (!yaml_parser_initialize(&reader.parser))
        return no_memory(source, error);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, size);
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    status result = read_document(&reader);
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    return result;
}
