#include "core/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

enum {
    VALUES_MOST = 1 << 22, /* CIFAR-100's training file has 100,000 */
    STACK_MOST = 1 << 16,  /* lists are built in batches of 1000 */
    SPARE = 64,            /* values and memory places beside those that are justified */
    CHUNK = 4096
};

/* Values are allocated in chunks, so that pointers to them stay valid. */
struct chunk {
    struct chunk *next;
    size_t used;
    struct pickle_value values[CHUNK];
};

struct pickle {
    struct chunk *chunks;
    struct pickle_value none, booleans[2];
    const struct pickle_value *root;
};

struct machine {
    struct pickle *pickle;
    const char *path;
    const uint8_t *bytes;
    size_t size, position, value_count;
    const struct pickle_rules *rules;
    struct pickle_value **stack; /* NULL entries are marks */
    size_t depth, stack_capacity;
    struct pickle_value **memo;
    size_t memo_count, memo_capacity;
    bool stopped;
    struct error *error;
};

static status refuse(struct machine *machine, const char *reason)
{
    return error_set(machine->error, ERROR_FORMAT, "%s: byte %zu: %s", machine->path, machine->position, reason);
}

/* How many values and memo entries there may be: Python writes two bytes or more for each. None and booleans, which take
 * one, are shared; a container that is not empty takes one, and two or more to be put into the memo. */
static size_t justified(const struct machine *machine)
{
    return machine->position / 2 + SPARE;
}

/* --- values, stack, memo ------------------------------------------------------------------------------------------ */

static status make_value(struct machine *machine, enum pickle_kind kind, struct pickle_value **value)
{
    struct pickle *pickle = machine->pickle;
    if (machine->value_count++ == VALUES_MOST)
        return refuse(machine, "holds more values than any pickle that is read here");
    if (machine->value_count > justified(machine))
        return refuse(machine, "holds more values than its bytes up to here justify");
    if (pickle->chunks == NULL || pickle->chunks->used == CHUNK) {
        struct chunk *chunk = xmalloc(sizeof *chunk);
        chunk->next = pickle->chunks;
        chunk->used = 0;
        pickle->chunks = chunk;
    }
    *value = &pickle->chunks->values[pickle->chunks->used++];
    **value = (struct pickle_value){.kind = kind};
    return OK;
}

/* Doubles an array of pointers when it is full; at most `most` entries. */
static status reserve(struct machine *machine, struct pickle_value ***items, size_t *capacity, size_t needed,
                      size_t most)
{
    if (needed <= *capacity)
        return OK;
    if (needed > most)
        return refuse(machine, "needs more room than its bytes up to here justify");
    size_t grown = *capacity * 2 > needed ? *capacity * 2 : needed;
    *items = xrealloc(*items, grown * sizeof **items);
    *capacity = grown;
    return OK;
}

static status push(struct machine *machine, struct pickle_value *value)
{
    TRY(reserve(machine, &machine->stack, &machine->stack_capacity, machine->depth + 1, STACK_MOST));
    machine->stack[machine->depth++] = value;
    return OK;
}

static status pop(struct machine *machine, struct pickle_value **value)
{
    if (machine->depth == 0 || machine->stack[machine->depth - 1] == NULL)
        return refuse(machine, "takes a value that is not there");
    *value = machine->stack[--machine->depth];
    return OK;
}

static status push_integer(struct machine *machine, int64_t integer)
{
    struct pickle_value *value;
    TRY(make_value(machine, PICKLE_INTEGER, &value));
    value->integer = integer;
    return push(machine, value);
}

static status push_empty(struct machine *machine, enum pickle_kind kind)
{
    struct pickle_value *value;
    TRY(make_value(machine, kind, &value));
    return push(machine, value);
}

/* The stack position behind the topmost mark. */
static status find_mark(struct machine *machine, size_t *position)
{
    for (size_t i = machine->depth; i > 0; i--) {
        if (machine->stack[i - 1] == NULL) {
            *position = i;
            return OK;
        }
    }
    return refuse(machine, "looks for a mark that is not there");
}

static status append_values(struct machine *machine, struct pickle_value *list, size_t from)
{
    size_t count = machine->depth - from;
    TRY(reserve(machine, &list->list.items, &list->list.capacity, list->list.count + count, VALUES_MOST));
    if (count > 0)
        memcpy(list->list.items + list->list.count, machine->stack + from, count * sizeof *machine->stack);
    list->list.count += count;
    machine->depth = from;
    return OK;
}

static status push_tuple(struct machine *machine, size_t count)
{
    struct pickle_value *tuple;
    if (machine->depth < count)
        return refuse(machine, "takes a value that is not there");
    for (size_t i = machine->depth - count; i < machine->depth; i++)
        if (machine->stack[i] == NULL)
            return refuse(machine, "takes a value that is not there");
    TRY(make_value(machine, PICKLE_LIST, &tuple));
    TRY(append_values(machine, tuple, machine->depth - count));
    return push(machine, tuple);
}

static status push_marked_tuple(struct machine *machine)
{
    size_t from;
    TRY(find_mark(machine, &from));
    TRY(push_tuple(machine, machine->depth - from));
    machine->stack[from - 1] = machine->stack[machine->depth - 1];
    machine->depth = from;
    return OK;
}

/* Appends everything above the mark to the list or dictionary below it. */
static status extend(struct machine *machine, enum pickle_kind kind)
{
    size_t from;
    TRY(find_mark(machine, &from));
    struct pickle_value *target = from >= 2 ? machine->stack[from - 2] : NULL;
    if (target == NULL || target->kind != kind || (kind == PICKLE_DICT && (machine->depth - from) % 2 != 0))
        return refuse(machine, kind == PICKLE_DICT ? "sets items of no dictionary" : "appends to no list");
    TRY(append_values(machine, target, from));
    machine->depth = from - 1;
    return OK;
}

/* Appends the topmost `count` values to the list or dictionary below them. */
static status append(struct machine *machine, enum pickle_kind kind, size_t count)
{
    for (size_t i = 0; i <= count; i++)
        if (machine->depth <= i || machine->stack[machine->depth - 1 - i] == NULL)
            return refuse(machine, "takes a value that is not there");
    struct pickle_value *target = machine->stack[machine->depth - 1 - count];
    if (target->kind != kind)
        return refuse(machine, kind == PICKLE_DICT ? "sets an item of no dictionary" : "appends to no list");
    return append_values(machine, target, machine->depth - count);
}

static status memo_put(struct machine *machine, size_t index)
{
    if (machine->depth == 0 || machine->stack[machine->depth - 1] == NULL)
        return refuse(machine, "remembers a value that is not there");
    TRY(reserve(machine, &machine->memo, &machine->memo_capacity, index + 1, justified(machine)));
    while (machine->memo_count <= index)
        machine->memo[machine->memo_count++] = NULL;
    machine->memo[index] = machine->stack[machine->depth - 1];
    return OK;
}

static status memo_get(struct machine *machine, size_t index)
{
    if (index >= machine->memo_count || machine->memo[index] == NULL)
        return refuse(machine, "recalls a value that was not remembered");
    return push(machine, machine->memo[index]);
}

/* --- globals ------------------------------------------------------------------------------------------------------ */

struct name {
    const char *text; /* inside the pickle */
    size_t size;
};

static status read_line(struct machine *machine, struct name *line)
{
    line->text = (const char *)machine->bytes + machine->position;
    const char *end = memchr(line->text, '\n', machine->size - machine->position);
    if (end == NULL)
        return refuse(machine, "ends inside a name");
    line->size = (size_t)(end - line->text);
    machine->position += line->size + 1;
    return OK;
}

static bool is_named(const struct name *name, const char *text)
{
    return name->size == strlen(text) && memcmp(name->text, text, name->size) == 0;
}

static bool is_inside(const struct name *module, const char *outer)
{
    size_t size = strlen(outer);
    return module->size > size && memcmp(module->text, outer, size) == 0 && module->text[size] == '.';
}

static int shown(const struct name *name)
{
    return (int)(name->size < 80 ? name->size : 80);
}

static status push_global(struct machine *machine)
{
    struct name module, name;
    struct pickle_value *value;
    TRY(read_line(machine, &module));
    TRY(read_line(machine, &name));
    for (size_t i = 0; i < machine->rules->count; i++) {
        const struct pickle_global *known = &machine->rules->globals[i];
        if (known->name != NULL ? !is_named(&module, known->module) || !is_named(&name, known->name)
                                : !is_named(&module, known->module) && !is_inside(&module, known->module))
            continue;
        TRY(make_value(machine, PICKLE_GLOBAL, &value));
        value->global = known;
        return push(machine, value);
    }
    return error_set(machine->error, ERROR_FORMAT, "%s: asks for %.*s.%.*s; refused: %s", machine->path, shown(&module),
                     module.text, shown(&name), name.text, machine->rules->needs);
}

/* A call by REDUCE, or by NEWOBJ of a class. */
static status call(struct machine *machine)
{
    struct pickle_value *arguments, *callable, *result;
    TRY(pop(machine, &arguments));
    TRY(pop(machine, &callable));
    if (callable->kind != PICKLE_GLOBAL || callable->global->makes == PICKLE_NONE || arguments->kind != PICKLE_LIST)
        return refuse(machine, "calls something that cannot be called");
    if (callable->global->makes == PICKLE_DICT && arguments->list.count > 0)
        return refuse(machine, "makes a dictionary from something other than its items");
    TRY(make_value(machine, callable->global->makes, &result));
    if (result->kind == PICKLE_CALL) {
        result->call.callable = callable->global;
        result->call.arguments = arguments;
    }
    return push(machine, result);
}

/* The state of a dictionary (OrderedDict's _metadata) is not needed. */
static status build(struct machine *machine)
{
    struct pickle_value *state;
    TRY(pop(machine, &state));
    struct pickle_value *target = machine->depth > 0 ? machine->stack[machine->depth - 1] : NULL;
    if (target == NULL || (target->kind != PICKLE_CALL && target->kind != PICKLE_DICT))
        return refuse(machine, "gives a state to something that has none");
    if (target->kind == PICKLE_CALL)
        target->call.state = state;
    return OK;
}

static status push_persistent(struct machine *machine)
{
    struct pickle_value *id, *value;
    TRY(pop(machine, &id));
    if (!machine->rules->persistent)
        return refuse(machine, "refers to something outside the pickle");
    TRY(make_value(machine, PICKLE_PERSISTENT, &value));
    value->id = id;
    return push(machine, value);
}

/* --- the machine -------------------------------------------------------------------------------------------------- */

static status read_number(struct machine *machine, int size, uint32_t *number)
{
    if (machine->size - machine->position < (size_t)size)
        return refuse(machine, "ends early");
    *number = 0;
    for (int i = 0; i < size; i++)
        *number |= (uint32_t)machine->bytes[machine->position++] << (8 * i);
    return OK;
}

static status push_string(struct machine *machine, int size_bytes)
{
    uint32_t size;
    struct pickle_value *value;
    TRY(read_number(machine, size_bytes, &size));
    if (machine->size - machine->position < size)
        return refuse(machine, "ends inside a string");
    TRY(make_value(machine, PICKLE_STRING, &value));
    value->string.bytes = machine->bytes + machine->position;
    value->string.size = size;
    machine->position += size;
    return push(machine, value);
}

static status push_real(struct machine *machine)
{
    struct pickle_value *value;
    uint64_t bits = 0;
    if (machine->size - machine->position < sizeof bits)
        return refuse(machine, "ends early");
    for (size_t i = 0; i < sizeof bits; i++)
        bits = bits << 8 | machine->bytes[machine->position++];
    TRY(make_value(machine, PICKLE_REAL, &value));
    memcpy(&value->real, &bits, sizeof bits);
    return push(machine, value);
}

/* Two's complement, the least significant byte first. */
static status push_long(struct machine *machine)
{
    uint32_t size;
    uint64_t bits = 0;
    TRY(read_number(machine, 1, &size));
    if (size > sizeof bits)
        return refuse(machine, "holds a whole number of more than 64 bits");
    if (machine->size - machine->position < size)
        return refuse(machine, "ends early");
    for (uint32_t i = 0; i < size; i++)
        bits |= (uint64_t)machine->bytes[machine->position++] << (8 * i);
    if (size > 0 && size < sizeof bits && machine->bytes[machine->position - 1] >= 0x80)
        bits |= UINT64_MAX << (8 * size);
    return push_integer(machine, (int64_t)bits);
}

static status skip_protocol(struct machine *machine)
{
    uint32_t version;
    TRY(read_number(machine, 1, &version));
    return version == 2 ? OK : refuse(machine, "expected pickle protocol 2");
}

static status with_number(struct machine *machine, uint8_t opcode, int size)
{
    uint32_t number;
    TRY(read_number(machine, size, &number));
    switch (opcode) {
    case 'q':
    case 'r':
        return memo_put(machine, number);
    case 'h':
    case 'j':
        return memo_get(machine, number);
    default:
        return push_integer(machine, opcode == 'J' ? (int64_t)(int32_t)number : (int64_t)number);
    }
}

static status step(struct machine *machine, uint8_t opcode)
{
    switch (opcode) {
    case 0x80:
        return skip_protocol(machine);
    case '.':
        machine->stopped = true;
        return OK;
    case '(':
        return push(machine, NULL);
    case 'N':
        return push(machine, &machine->pickle->none);
    case 0x88:
    case 0x89:
        return push(machine, &machine->pickle->booleans[opcode == 0x88]);
    case 'K':
    case 'q':
    case 'h':
        return with_number(machine, opcode, 1);
    case 'M':
        return with_number(machine, opcode, 2);
    case 'J':
    case 'r':
    case 'j':
        return with_number(machine, opcode, 4);
    case 'U':
        return push_string(machine, 1);
    case 'T':
    case 'X':
        return push_string(machine, 4);
    case ']':
    case ')':
        return push_empty(machine, PICKLE_LIST);
    case '}':
        return push_empty(machine, PICKLE_DICT);
    case 'a':
        return append(machine, PICKLE_LIST, 1);
    case 's':
        return append(machine, PICKLE_DICT, 2);
    case 'e':
        return extend(machine, PICKLE_LIST);
    case 'u':
        return extend(machine, PICKLE_DICT);
    case 't':
        return push_marked_tuple(machine);
    case 0x85:
    case 0x86:
    case 0x87:
        return push_tuple(machine, (size_t)(opcode - 0x84));
    case 'c':
        return push_global(machine);
    case 'R':
    case 0x81:
        return call(machine);
    case 'Q':
        return push_persistent(machine);
    case 'G':
        return push_real(machine);
    case 0x8a:
        return push_long(machine);
    case 'b':
        return build(machine);
    default:
        machine->position--;
        return error_set(machine->error, ERROR_FORMAT, "%s: byte %zu: opcode 0x%02x is not known; refused: %s",
                         machine->path, machine->position, opcode, machine->rules->needs);
    }
}

static status run(struct machine *machine)
{
    while (!machine->stopped) {
        if (machine->position == machine->size)
            return refuse(machine, "the pickle ends early");
        TRY(step(machine, machine->bytes[machine->position++]));
    }
    if (machine->depth != 1 || machine->stack[0] == NULL)
        return refuse(machine, "expected one value");
    machine->pickle->root = machine->stack[0];
    return OK;
}

status pickle_parse(struct pickle **pickle, const char *name, const void *bytes, size_t size,
                    const struct pickle_rules *rules, struct error *error)
{
    SCOPED(pickle_close_at) struct pickle *opened = xcalloc(1, sizeof *opened);
    *pickle = NULL;
    opened->booleans[0].kind = opened->booleans[1].kind = PICKLE_INTEGER;
    opened->booleans[1].integer = 1;
    struct machine machine = {
        .pickle = opened, .path = name, .bytes = bytes, .size = size, .rules = rules, .error = error};
    status result = run(&machine);
    free(machine.stack);
    free(machine.memo);
    TRY(result);
    *pickle = TAKE(opened);
    return OK;
}

void pickle_close(struct pickle *pickle)
{
    if (pickle == NULL)
        return;
    while (pickle->chunks != NULL) {
        OWNED struct chunk *chunk = pickle->chunks;
        for (size_t i = 0; i < chunk->used; i++)
            if (chunk->values[i].kind == PICKLE_LIST || chunk->values[i].kind == PICKLE_DICT)
                free(chunk->values[i].list.items);
        pickle->chunks = chunk->next;
    }
    free(pickle);
}

const struct pickle_value *pickle_root(const struct pickle *pickle)
{
    return pickle->root;
}

bool pickle_is_text(const struct pickle_value *value, const char *text)
{
    return value != NULL && value->kind == PICKLE_STRING && value->string.size == strlen(text) &&
           memcmp(value->string.bytes, text, value->string.size) == 0;
}

bool pickle_calls(const struct pickle_value *value, const char *name)
{
    return value != NULL && value->kind == PICKLE_CALL && value->call.callable->name != NULL &&
           strcmp(value->call.callable->name, name) == 0;
}

const struct pickle_value *pickle_find(const struct pickle_value *value, const char *key)
{
    for (size_t i = 0; value != NULL && value->kind == PICKLE_DICT && i + 1 < value->list.count; i += 2)
        if (pickle_is_text(value->list.items[i], key))
            return value->list.items[i + 1];
    return NULL;
}
