#include "results/table.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"

void table_add_column(struct table *table, const struct table_column *column)
{
    assert(table->count == 0);
    GROW(table->column, table->columns);
    table->column[table->columns] = *column;
    table->column[table->columns++].title = xstrdup(column->title);
}

static void add_cell(struct table *table, struct table_cell cell)
{
    GROW(table->cell, table->count);
    cell.begins = table->begins || table->count == 0;
    table->begins = false;
    table->cell[table->count++] = cell;
}

void table_add_empty(struct table *table)
{
    add_cell(table, (struct table_cell){.kind = CELL_EMPTY});
}

void table_add_integer(struct table *table, int64_t value)
{
    add_cell(table, (struct table_cell){.kind = CELL_INTEGER, .integer = value});
}

void table_add_real(struct table *table, double value)
{
    add_cell(table, (struct table_cell){.kind = isfinite(value) ? CELL_REAL : CELL_EMPTY, .real = value});
}

void table_add_text(struct table *table, const char *value)
{
    if (value)
        table_add_text_bytes(table, value, strlen(value));
    else
        table_add_empty(table);
}

void table_add_text_bytes(struct table *table, const char *value, size_t size)
{
    add_cell(table, (struct table_cell){.kind = CELL_TEXT, .text = xstrndup(value, size)});
}

void table_add_cell(struct table *table, const struct table_cell *cell)
{
    struct table_cell copy = *cell;
    if (cell->kind == CELL_TEXT)
        copy.text = xstrdup(cell->text);
    add_cell(table, copy);
}

void table_begin_block(struct table *table)
{
    assert(table->count % table->columns == 0);
    table->begins = table->count > 0;
    table->blocks += table->begins;
}

size_t table_rows(const struct table *table)
{
    return table->columns ? table->count / table->columns : 0;
}

const struct table_cell *table_cell_at(const struct table *table, size_t row, size_t column)
{
    return &table->cell[row * table->columns + column];
}

double table_cell_real(const struct table_cell *cell)
{
    return cell->kind == CELL_REAL ? cell->real : cell->kind == CELL_INTEGER ? (double)cell->integer : (double)NAN;
}

bool table_column_is_numeric(const struct table *table, size_t column)
{
    bool number = false;
    for (size_t row = 0; row < table_rows(table); row++) {
        enum cell_kind kind = table_cell_at(table, row, column)->kind;
        if (kind == CELL_TEXT)
            return false;
        number |= kind != CELL_EMPTY;
    }
    return number;
}

void table_clear(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->cell[i].kind == CELL_TEXT)
            free(table->cell[i].text);
    table->count = table->blocks = 0;
}

void table_free(struct table *table)
{
    table_clear(table);
    for (size_t i = 0; i < table->columns; i++)
        free((char *)table->column[i].title);
    free(table->column);
    free(table->cell);
    *table = (struct table){0};
}

void table_keep(struct table *table, const bool *keep)
{
    size_t columns = 0, count = 0;
    for (size_t i = 0; i < table->count; i++) {
        struct table_cell *cell = &table->cell[i];
        bool begins = table->cell[i - i % table->columns].begins;
        if (keep[i % table->columns]) {
            table->cell[count] = *cell;
            table->cell[count++].begins = begins;
        } else if (cell->kind == CELL_TEXT) {
            free(cell->text);
        }
    }
    for (size_t i = 0; i < table->columns; i++) {
        if (keep[i])
            table->column[columns++] = table->column[i];
        else
            free((char *)table->column[i].title);
    }
    table->columns = columns;
    table->count = count;
}

/* --- Numbers --- */

void table_number(double value, int decimals, char number[TABLE_NUMBER])
{
    if (decimals == DECIMALS_ALL)
        snprintf(number, TABLE_NUMBER, "%.6g", value);
    else
        snprintf(number, TABLE_NUMBER, "%.*f", decimals, value);
    if (number[0] == '-' && strtod(number, NULL) == 0) /* no "-0.0" */
        memmove(number, number + 1, strlen(number));
}

const char *table_cell_text(const struct table_cell *cell, int decimals, char number[TABLE_NUMBER])
{
    number[0] = 0;
    if (cell->kind == CELL_INTEGER) {
        snprintf(number, TABLE_NUMBER, "%" PRId64, cell->integer);
    } else if (cell->kind == CELL_REAL && decimals == DECIMALS_EXACT) {
        SCOPED(text_free) struct text digits = {0};
        text_add_real(&digits, cell->real);
        snprintf(number, TABLE_NUMBER, "%s", digits.data);
    } else if (cell->kind == CELL_REAL) {
        table_number(cell->real, decimals, number);
    }
    return cell->kind == CELL_TEXT ? cell->text : number;
}
