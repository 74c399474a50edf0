#include "datasets/formats/pickle.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

enum {
    VALUES_MOST = 1 << 22, /* CIFAR-100's training file has 100,000 */
    STACK_MOST = 1 << 16,  /* lists are built in batches of 1000 */
    MEMO_MOST = 1 << 22,
    CHUNK = 4096
};

/* Values are allocated in chunks, so that pointers to them stay valid. */
struct chunk {
    struct chunk *next;
    size_t used;
    struct pickle_value values[CHUNK];
};

struct pickle {
    struct bytes file;
    struct chunk *chunks;
    const struct pickle_value *root;
};

struct machine {
    struct pickle *pickle;
    const char *path;
    size_t position, value_count;
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

static status no_memory(struct machine *machine)
{
    return error_set(machine->error, ERROR_MEMORY, "%s: no memory for its values", machine->path);
}

/* --- values, stack, memo ------------------------------------------------------------------------------------------ */

static status make_value(struct machine *machine, enum pickle_kind kind, struct pickle_value **value)
{
    struct pickle *pickle = machine->pickle;
    if (machine->value_count++ == VALUES_MOST)
        return refuse(machine, "holds more values than any file of CIFAR");
    if (pickle->chunks == NULL || pickle->chunks->used == CHUNK) {
        struct chunk *chunk = malloc(sizeof *chunk);
        if (chunk == NULL)
            return no_memory(machine);
        chunk->next = pickle->chunks;
        chunk->used = 0;
        pickle->chunks = chunk;
    }
    *value = &pickle->chunks->values[pickle->chunks->used++];
    **value = (struct pickle_value){.kind = kind};
    return OK;
}

/* Doubles an array of pointers when it is full; at most `most` entries. */
static status make_room(struct machine *machine, struct pickle_value ***items, size_t *capacity, size_t needed,
                        size_t most)
{
    if (needed <= *capacity)
        return OK;
    if (needed > most)
        return refuse(machine, "needs more room than any file of CIFAR");
    size_t grown = *capacity * 2 > needed ? *capacity * 2 : needed + 8;
    struct pickle_value **moved = realloc(*items, grown * sizeof *moved);
    if (moved == NULL)
        return no_memory(machine);
    *items = moved;
    *capacity = grown;
    return OK;
}

static status push(struct machine *machine, struct pickle_value *value)
{
    TRY(make_room(machine, &machine->stack, &machine->stack_capacity, machine->depth + 1, STACK_MOST));
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
    TRY(make_room(machine, &list->list.items, &list->list.capacity, list->list.count + count, VALUES_MOST));
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
    TRY(make_room(machine, &machine->memo, &machine->memo_capacity, index + 1, MEMO_MOST));
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

/* --- numpy's three constructors ----------------------------------------------------------------------------------- */

static status read_line(struct machine *machine, const uint8_t **line, size_t *size)
{
    *line = machine->pickle->file.data + machine->position;
    size_t left = machine->pickle->file.size - machine->position;
    const uint8_t *end = memchr(*line, '\n', left);
    if (end == NULL)
        return refuse(machine, "ends inside a name");
    *size = (size_t)(end - *line);
    machine->position += *size + 1;
    return OK;
}

static status push_global(struct machine *machine)
{
    static const char *const known[][2] = {[PICKLE_RECONSTRUCT] = {"numpy.core.multiarray", "_reconstruct"},
                                           [PICKLE_NDARRAY] = {"numpy", "ndarray"},
                                           [PICKLE_DTYPE] = {"numpy", "dtype"}};
    const uint8_t *names[2];
    size_t sizes[2];
    struct pickle_value *value;
    TRY(read_line(machine, &names[0], &sizes[0]));
    TRY(read_line(machine, &names[1], &sizes[1]));
    for (int i = 0; i < 3; i++) {
        if (sizes[0] != strlen(known[i][0]) || sizes[1] != strlen(known[i][1]) ||
            memcmp(names[0], known[i][0], sizes[0]) != 0 || memcmp(names[1], known[i][1], sizes[1]) != 0)
            continue;
        TRY(make_value(machine, PICKLE_GLOBAL, &value));
        value->global = (enum pickle_global)i;
        return push(machine, value);
    }
    return error_set(machine->error, ERROR_FORMAT,
                     "%s: asks for %.*s.%.*s; refused: a CIFAR file needs numpy's array constructors only",
                     machine->path, (int)(sizes[0] < 80 ? sizes[0] : 80), (const char *)names[0],
                     (int)(sizes[1] < 80 ? sizes[1] : 80), (const char *)names[1]);
}

static bool is_bytes_type(const struct pickle_value *name)
{
    return name->kind == PICKLE_STRING && name->string.size == 2 && memcmp(name->string.bytes, "u1", 2) == 0;
}

/* _reconstruct(ndarray, …) and dtype("u1", …). */
static status reduce(struct machine *machine)
{
    struct pickle_value *arguments, *callable;
    TRY(pop(machine, &arguments));
    TRY(pop(machine, &callable));
    if (callable->kind != PICKLE_GLOBAL || arguments->kind != PICKLE_LIST || arguments->list.count == 0)
        return refuse(machine, "calls something that is no constructor of numpy");
    const struct pickle_value *first = arguments->list.items[0];
    if (callable->global == PICKLE_RECONSTRUCT && first->kind == PICKLE_GLOBAL && first->global == PICKLE_NDARRAY)
        return push_empty(machine, PICKLE_ARRAY);
    if (callable->global == PICKLE_DTYPE && is_bytes_type(first))
        return push_empty(machine, PICKLE_TYPE);
    return refuse(machine, "calls a constructor of numpy for something other than an array of bytes");
}

/* An array's state: version, shape, type, Fortran order, bytes. A type's state says nothing about bytes. */
static status build(struct machine *machine)
{
    struct pickle_value *state;
    TRY(pop(machine, &state));
    struct pickle_value *target = machine->depth > 0 ? machine->stack[machine->depth - 1] : NULL;
    if (target == NULL || (target->kind != PICKLE_ARRAY && target->kind != PICKLE_TYPE) || state->kind != PICKLE_LIST)
        return refuse(machine, "gives a state to something that is no array");
    if (target->kind == PICKLE_TYPE)
        return OK;
    if (state->list.count != 5)
        return refuse(machine, "an array's state has five parts");
    struct pickle_value **part = state->list.items;
    if (part[1]->kind != PICKLE_LIST || part[1]->list.count != 2 || part[1]->list.items[0]->kind != PICKLE_INTEGER ||
        part[1]->list.items[1]->kind != PICKLE_INTEGER || part[2]->kind != PICKLE_TYPE ||
        part[3]->kind != PICKLE_INTEGER || part[3]->integer != 0 || part[4]->kind != PICKLE_STRING)
        return refuse(machine, "expected an array of bytes in two dimensions, rows first");
    int64_t rows = part[1]->list.items[0]->integer, columns = part[1]->list.items[1]->integer;
    if (rows < 1 || columns < 1 || (uint64_t)rows > part[4]->string.size / (uint64_t)columns ||
        (uint64_t)rows * (uint64_t)columns != part[4]->string.size)
        return refuse(machine, "an array's shape and its number of bytes differ");
    target->array.bytes = part[4]->string.bytes;
    target->array.rows = (size_t)rows;
    target->array.columns = (size_t)columns;
    return OK;
}

/* --- the machine -------------------------------------------------------------------------------------------------- */

static status read_number(struct machine *machine, int size, uint32_t *number)
{
    if (machine->pickle->file.size - machine->position < (size_t)size)
        return refuse(machine, "ends early");
    *number = 0;
    for (int i = 0; i < size; i++)
        *number |= (uint32_t)machine->pickle->file.data[machine->position++] << (8 * i);
    return OK;
}

static status push_string(struct machine *machine, int size_bytes)
{
    uint32_t size;
    struct pickle_value *value;
    TRY(read_number(machine, size_bytes, &size));
    if (machine->pickle->file.size - machine->position < size)
        return refuse(machine, "ends inside a string");
    TRY(make_value(machine, PICKLE_STRING, &value));
    value->string.bytes = machine->pickle->file.data + machine->position;
    value->string.size = size;
    machine->position += size;
    return push(machine, value);
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
        return push_empty(machine, PICKLE_NONE);
    case 0x88:
    case 0x89:
        return push_integer(machine, opcode == 0x88);
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
        return reduce(machine);
    case 'b':
        return build(machine);
    default:
        machine->position--;
        return error_set(machine->error, ERROR_FORMAT, "%s: byte %zu: opcode 0x%02x is none that a CIFAR file needs",
                         machine->path, machine->position, opcode);
    }
}

static status run(struct machine *machine)
{
    while (!machine->stopped) {
        if (machine->position == machine->pickle->file.size)
            return refuse(machine, "the pickle ends early");
        TRY(step(machine, machine->pickle->file.data[machine->position++]));
    }
    if (machine->depth != 1 || machine->stack[0] == NULL || machine->stack[0]->kind != PICKLE_DICT)
        return refuse(machine, "expected one dictionary");
    machine->pickle->root = machine->stack[0];
    return OK;
}

status pickle_open(struct pickle **pickle, const char *path, struct error *error)
{
    struct pickle *opened = calloc(1, sizeof *opened);
    *pickle = NULL;
    if (opened == NULL)
        return error_set(error, ERROR_MEMORY, "%s: no memory to read it", path);
    struct machine machine = {.pickle = opened, .path = path, .error = error};
    status result = file_read(path, SIZE_MAX, &opened->file, error);
    NEXT(result, run(&machine));
    free(machine.stack);
    free(machine.memo);
    if (result != OK) {
        pickle_close(opened);
        return result;
    }
    *pickle = opened;
    return OK;
}

void pickle_close(struct pickle *pickle)
{
    if (pickle == NULL)
        return;
    while (pickle->chunks != NULL) {
        struct chunk *chunk = pickle->chunks;
        for (size_t i = 0; i < chunk->used; i++)
            if (chunk->values[i].kind == PICKLE_LIST || chunk->values[i].kind == PICKLE_DICT)
                free(chunk->values[i].list.items);
        pickle->chunks = chunk->next;
        free(chunk);
    }
    bytes_free(&pickle->file);
    free(pickle);
}

const struct pickle_value *pickle_find(const struct pickle *pickle, const char *key)
{
    const struct pickle_value *root = pickle->root;
    for (size_t i = 0; i + 1 < root->list.count; i += 2) {
        const struct pickle_value *name = root->list.items[i];
        if (name->kind == PICKLE_STRING && name->string.size == strlen(key) &&
            memcmp(name->string.bytes, key, name->string.size) == 0)
            return root->list.items[i + 1];
    }
    return NULL;
}
