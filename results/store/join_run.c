/* One run in two databases: compares its rows and copies them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "results/store/join_internal.h"

status join_side_open(struct join_side *side, const struct join_layout *layout, struct database *database,
                      const char *name, struct error *error)
{
    *side = (struct join_side){.layout = layout, .database = database, .name = name};
    side->read = calloc(layout->count, sizeof *side->read);
    side->write = calloc(layout->count, sizeof *side->write);
    if (side->read && side->write)
        return OK;
    join_side_close(side);
    return error_set(error, ERROR_MEMORY, "%s: out of memory", name);
}

void join_side_close(struct join_side *side)
{
    for (size_t i = 0; side->read && side->write && i < side->layout->count; i++) {
        statement_close(side->read[i]);
        statement_close(side->write[i]);
    }
    free(side->read);
    free(side->write);
    *side = (struct join_side){0};
}

/* The rows of a run, from the first. */
static status begin_reading(struct join_side *side, size_t table, int64_t run, bool *row, struct error *error)
{
    if (!side->read[table])
        TRY(statement_open(&side->read[table], side->database, side->layout->table[table].read.data, error));
    TRY(statement_bind(side->read[table], VALUES(value_integer(run)), error));
    return statement_step(side->read[table], row, error);
}

static int compare_bytes(const struct value *a, const struct value *b)
{
    size_t shared = a->bytes.size < b->bytes.size ? a->bytes.size : b->bytes.size;
    int order = memcmp(a->bytes.data, b->bytes.data, shared);
    return order ? order : (a->bytes.size > b->bytes.size) - (a->bytes.size < b->bytes.size);
}

/* Compares in SQLite's order. Tables are STRICT, so a column's values have one type or are null. */
static int compare_values(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return (a->kind > b->kind) - (a->kind < b->kind);
    switch (a->kind) {
    case VALUE_INTEGER:
        return (a->integer > b->integer) - (a->integer < b->integer);
    case VALUE_REAL:
        return (a->real > b->real) - (a->real < b->real);
    case VALUE_TEXT:
    case VALUE_BLOB:
        return compare_bytes(a, b);
    case VALUE_NULL:
        break;
    }
    return 0;
}

/* The first column of [from, to) in which two rows differ; to: none. *order says how. */
static size_t first_difference(struct statement *a, struct statement *b, size_t from, size_t to, int *order)
{
    for (size_t column = from; column < to; column++) {
        struct value left = statement_value(a, column), right = statement_value(b, column);
        *order = compare_values(&left, &right);
        if (*order != 0)
            return column;
    }
    *order = 0;
    return to;
}

static void add_value(struct text *text, const struct value *value)
{
    switch (value->kind) {
    case VALUE_INTEGER:
        text_add(text, "%" PRId64, value->integer);
        break;
    case VALUE_REAL:
        text_add(text, "%.17g", value->real);
        break;
    case VALUE_TEXT:
        text_add(text, "\"%.60s\"", (const char *)value->bytes.data);
        break;
    case VALUE_BLOB:
        text_add(text, "%zu bytes", value->bytes.size);
        break;
    case VALUE_NULL:
        text_add(text, "nothing");
        break;
    }
}

/* "evaluations (task 2, after_task 5)" */
static void add_place(struct text *text, const struct join_table *table, struct statement *row)
{
    text_add(text, "%s", table->name);
    for (size_t i = 0; i < table->keys; i++) {
        struct value key = statement_value(row, i);
        text_add(text, "%s%s ", i ? ", " : " (", table->column[i]);
        add_value(text, &key);
    }
    text_add(text, "%s", table->keys ? ")" : "");
}

static void add_contradiction(struct text *text, const struct join_table *table, size_t column,
                              const struct join_side *first, struct statement *a, const struct join_side *second,
                              struct statement *b)
{
    struct value left = statement_value(a, column), right = statement_value(b, column);
    add_place(text, table, a);
    if (left.kind == VALUE_BLOB && right.kind == VALUE_BLOB && left.bytes.size == right.bytes.size) {
        text_add(text, ": %s differs", table->column[column]);
        return;
    }
    text_add(text, ": %s is ", table->column[column]);
    add_value(text, &left);
    text_add(text, " in %s and ", first->name);
    add_value(text, &right);
    text_add(text, " in %s", second->name);
}

/* Both statements are ordered by key, and stand on their first row where there is one. */
static status compare_rows(struct join_side *first, bool left, struct join_side *second, bool right, size_t index,
                           struct join_difference *difference, struct error *error)
{
    const struct join_table *table = &first->layout->table[index];
    struct statement *a = first->read[index], *b = second->read[index];
    while (left || right) {
        int order = left ? -1 : 1;
        if (left && right)
            first_difference(a, b, 0, table->keys, &order);
        struct text *only = order < 0 ? &difference->only_first : &difference->only_second;
        if (order != 0 && only->size == 0)
            add_place(only, table, order < 0 ? a : b);
        if (order == 0) {
            size_t column = first_difference(a, b, table->keys, table->columns, &order);
            if (column < table->columns) {
                add_contradiction(&difference->contradiction, table, column, first, a, second, b);
                return OK;
            }
        }
        if (order <= 0)
            TRY(statement_step(a, &left, error));
        if (order >= 0)
            TRY(statement_step(b, &right, error));
    }
    return OK;
}

status join_compare_table(struct join_side *first, int64_t first_run, struct join_side *second, int64_t second_run,
                          size_t table, struct join_difference *difference, struct error *error)
{
    bool left, right;
    struct text *contradiction = &difference->contradiction;
    TRY(begin_reading(first, table, first_run, &left, error));
    TRY(begin_reading(second, table, second_run, &right, error));
    TRY(compare_rows(first, left, second, right, table, difference, error));
    if (contradiction->size == 0 && difference->only_first.size && difference->only_second.size)
        text_add(contradiction, "%s is only in %s and %s only in %s", difference->only_first.data, first->name,
                 difference->only_second.data, second->name);
    bool failed = contradiction->failed || difference->only_first.failed || difference->only_second.failed;
    return failed ? error_set(error, ERROR_MEMORY, "%s: out of memory", first->name) : OK;
}

status join_compare(struct join_side *first, int64_t first_run, struct join_side *second, int64_t second_run,
                    struct join_difference *difference, struct error *error)
{
    *difference = (struct join_difference){0};
    for (size_t i = 0; i < first->layout->count && difference->contradiction.size == 0; i++)
        if (first->layout->table[i].observed)
            TRY(join_compare_table(first, first_run, second, second_run, i, difference, error));
    return OK;
}

void join_difference_free(struct join_difference *difference)
{
    text_free(&difference->only_first);
    text_free(&difference->only_second);
    text_free(&difference->contradiction);
}

static status copy_row(struct join_side *source, struct join_side *target, size_t table, int64_t number,
                       struct error *error)
{
    struct value values[JOIN_COLUMNS_LIMIT + 1] = {number ? value_integer(number) : value_null()};
    size_t columns = source->layout->table[table].columns;
    for (size_t column = 0; column < columns; column++)
        values[column + 1] = statement_value(source->read[table], column);
    return statement_run(target->write[table], values, columns + 1, error);
}

static status copy_table(struct join_side *source, int64_t run, struct join_side *target, size_t table, int64_t *number,
                         struct error *error)
{
    bool row;
    if (!target->write[table])
        TRY(statement_open(&target->write[table], target->database, source->layout->table[table].write.data, error));
    TRY(begin_reading(source, table, run, &row, error));
    while (row) {
        if (copy_row(source, target, table, *number, error) != OK)
            return error_context(error, "rows of %s", source->name);
        if (*number == 0) /* of `runs`, which comes first and has one row */
            *number = database_last_row(target->database);
        TRY(statement_step(source->read[table], &row, error));
    }
    return OK;
}

status join_copy(struct join_side *source, int64_t run, struct join_side *target, int64_t *number, struct error *error)
{
    for (size_t table = 0; table < source->layout->count; table++)
        TRY(copy_table(source, run, target, table, number, error));
    return OK;
}

status join_erase(struct join_side *target, int64_t run, struct error *error)
{
    for (size_t table = target->layout->count; table-- > 0;) {
        struct statement *statement;
        TRY(statement_open(&statement, target->database, target->layout->table[table].erase.data, error));
        status result = statement_run(statement, VALUES(value_integer(run)), error);
        statement_close(statement);
        TRY(result);
    }
    return OK;
}
