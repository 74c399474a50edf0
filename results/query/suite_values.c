#include "results/query/suite_values.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/text.h"

enum { DEPTH_MOST = 16 };

struct reader {
    yaml_parser_t parser;
    struct suite_values *values;
    size_t capacity;
    struct error *error;
};

static status wrong(const struct reader *reader, const char *found)
{
    return error_set(reader->error, ERROR_FORMAT, "suite text, line %zu: expected keys and values, found %s",
                     reader->parser.mark.line + 1, found);
}

static status next_event(struct reader *reader, yaml_event_t *event)
{
    if (yaml_parser_parse(&reader->parser, event))
        return OK;
    const char *problem = reader->parser.problem;
    return wrong(reader, problem != NULL ? problem : "something else");
}

static status out_of_memory(const struct reader *reader)
{
    return error_set(reader->error, ERROR_MEMORY, "suite text: no memory for its values");
}

/* Takes over value's memory. */
static status add_value(struct reader *reader, const char *key, struct text *value)
{
    struct suite_values *values = reader->values;
    if (values->count == reader->capacity) {
        size_t capacity = reader->capacity ? reader->capacity * 2 : 64;
        struct suite_value *larger = realloc(values->value, capacity * sizeof *larger);
        if (larger == NULL)
            return out_of_memory(reader);
        values->value = larger;
        reader->capacity = capacity;
    }
    char *copy = value->failed ? NULL : strdup(key);
    if (copy == NULL)
        return out_of_memory(reader);
    values->value[values->count++] = (struct suite_value){copy, value->data};
    *value = (struct text){0};
    return OK;
}

static void add_scalar(struct text *text, const yaml_event_t *event)
{
    text_add(text, "%s", "");
    text_add_bytes(text, (const char *)event->data.scalar.value, event->data.scalar.length);
}

static status read_node(struct reader *reader, const char *key, yaml_event_t *event, int depth);

/* Behind the "[". Lists of lists do not occur. */
static status read_list(struct reader *reader, struct text *text)
{
    text_add(text, "[");
    for (bool first = true;; first = false) {
        yaml_event_t event;
        TRY(next_event(reader, &event));
        yaml_event_type_t type = event.type;
        if (type == YAML_SCALAR_EVENT) {
            text_add(text, first ? "" : ", ");
            add_scalar(text, &event);
        }
        yaml_event_delete(&event);
        if (type == YAML_SEQUENCE_END_EVENT)
            break;
        if (type != YAML_SCALAR_EVENT)
            return wrong(reader, "a list of something else than values");
    }
    text_add(text, "]");
    return OK;
}

static status read_pair(struct reader *reader, const char *above, const yaml_event_t *name, int depth)
{
    struct text key = {0};
    yaml_event_t event;
    if (*above != 0)
        text_add(&key, "%s.", above);
    add_scalar(&key, name);
    status result = key.failed ? out_of_memory(reader) : next_event(reader, &event);
    if (result == OK) {
        result = read_node(reader, key.data, &event, depth + 1);
        yaml_event_delete(&event);
    }
    text_free(&key);
    return result;
}

static status read_mapping(struct reader *reader, const char *key, int depth)
{
    if (depth > DEPTH_MOST)
        return wrong(reader, "too many levels");
    for (;;) {
        yaml_event_t event;
        TRY(next_event(reader, &event));
        yaml_event_type_t type = event.type;
        status result = type == YAML_SCALAR_EVENT        ? read_pair(reader, key, &event, depth)
                        : type == YAML_MAPPING_END_EVENT ? OK
                                                         : wrong(reader, "a key that is no word");
        yaml_event_delete(&event);
        if (result != OK || type == YAML_MAPPING_END_EVENT)
            return result;
    }
}

static status read_node(struct reader *reader, const char *key, yaml_event_t *event, int depth)
{
    struct text text = {0};
    if (event->type == YAML_MAPPING_START_EVENT)
        return read_mapping(reader, key, depth);
    status result = OK;
    if (event->type == YAML_SCALAR_EVENT)
        add_scalar(&text, event);
    else if (event->type == YAML_SEQUENCE_START_EVENT)
        result = read_list(reader, &text);
    else
        result = wrong(reader, "an alias");
    if (result == OK)
        result = add_value(reader, key, &text);
    text_free(&text);
    return result;
}

/* Stream and document starts, and an empty text, pass. */
static status read_document(struct reader *reader)
{
    for (;;) {
        yaml_event_t event;
        TRY(next_event(reader, &event));
        yaml_event_type_t type = event.type;
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return OK;
        if (type == YAML_MAPPING_START_EVENT)
            return read_mapping(reader, "", 0);
        if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT)
            return wrong(reader, "no mapping");
    }
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct suite_value *)a)->key, ((const struct suite_value *)b)->key);
}

status suite_values_read(struct suite_values *values, const char *text, struct error *error)
{
    *values = (struct suite_values){0};
    struct reader reader = {.values = values, .error = error};
    if (!yaml_parser_initialize(&reader.parser))
        return out_of_memory(&reader);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, strlen(text));
    status result = read_document(&reader);
    yaml_parser_delete(&reader.parser);
    if (values->count > 1)
        qsort(values->value, values->count, sizeof *values->value, compare_keys);
    return result;
}

void suite_values_free(struct suite_values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        free(values->value[i].key);
        free(values->value[i].value);
    }
    free(values->value);
    *values = (struct suite_values){0};
}

status suite_values_set(struct suite_values *values, const char *key, const char *value, struct error *error)
{
    size_t at = 0;
    while (at < values->count && strcmp(values->value[at].key, key) < 0)
        at++;
    bool there = at < values->count && strcmp(values->value[at].key, key) == 0;
    struct suite_value *larger = realloc(values->value, (values->count + 1) * sizeof *larger),
                       made = {.key = there ? NULL : strdup(key), .value = strdup(value)};
    if (larger != NULL)
        values->value = larger;
    if (larger == NULL || made.value == NULL || (!there && made.key == NULL)) {
        free(made.key);
        free(made.value);
        return error_set(error, ERROR_MEMORY, "suite: out of memory for its values");
    }
    if (there) {
        free(larger[at].value);
        larger[at].value = made.value;
        return OK;
    }
    memmove(larger + at + 1, larger + at, (values->count++ - at) * sizeof *larger);
    larger[at] = made;
    return OK;
}

const char *suite_values_find(const struct suite_values *values, const char *key)
{
    struct suite_value wanted = {.key = (char *)key};
    const struct suite_value *found =
        values->count ? bsearch(&wanted, values->value, values->count, sizeof wanted, compare_keys) : NULL;
    return found != NULL ? found->value : NULL;
}

void suite_values_compare(const struct suite_values *a, const struct suite_values *b, suite_difference *take,
                          void *context)
{
    size_t i = 0, j = 0;
    while (i < a->count || j < b->count) {
        int order = i == a->count ? 1 : j == b->count ? -1 : compare_keys(&a->value[i], &b->value[j]);
        const struct suite_value *x = order <= 0 ? &a->value[i++] : NULL, *y = order >= 0 ? &b->value[j++] : NULL;
        if (x == NULL || y == NULL || strcmp(x->value, y->value) != 0)
            take(context, x != NULL ? x->key : y->key, x != NULL ? x->value : NULL, y != NULL ? y->value : NULL);
    }
}
