/* A table of typed cells, and its forms: aligned text, CSV, JSON, Markdown, LaTeX.
 *
 *     struct table table = {0};
 *     table_add_column(&table, &(struct table_column){.title = "task"});
 *     table_add_column(&table, &(struct table_column){.title = "last", .decimals = 1});
 *     table_add_text(&table, "mnist");
 *     table_add_real(&table, 97.84);                                      // cells come row by row
 *     table_begin_block(&table);                                          // a rule above the next row
 *     table_render(&table, TABLE_LATEX, false, &text);                    // appends to a struct text
 *     table_free(&table);
 *
 * Formats for people (table, Markdown, LaTeX) round numbers and show a column "last" and the next one, "last ±", as one, "58.3 ± 4.7";
 * formats for programs (CSV, JSON) keep all digits and columns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "core/text.h"

enum table_align { ALIGN_AUTO, ALIGN_LEFT, ALIGN_RIGHT }; /* auto: columns of numbers to the right */

#define DECIMALS_ALL (-1)   /* as many as the number needs */
#define DECIMALS_EXACT (-2) /* all digits that tell a number from others */

struct table_column {
    const char *title; /* copied */
    enum table_align align;
    int decimals; /* of reals, for people */
    int extra;    /* where a terminal is too narrow, columns are left out from 1 on; 0: this one never is */
    bool once;    /* in formats for people, only in the first row of each block */
};

enum cell_kind { CELL_EMPTY, CELL_INTEGER, CELL_REAL, CELL_TEXT };

struct table_cell {
    enum cell_kind kind;
    bool begins; /* the first of a block */
    bool marked; /* it stands out: bold, or in a page framed */
    union {
        int64_t integer;
        double real;
        char *text;
    };
};

/* Zero-initialised is empty. */
struct table {
    size_t columns, count; /* count: cells so far; rows are count / columns */
    struct table_column *column;
    struct table_cell *cell; /* [rows, columns] */
    size_t blocks;           /* but the first one */
    bool begins;             /* a block, with the next cell */
};

/* Columns come before the first cell. */
void table_add_column(struct table *table, const struct table_column *column);

void table_add_empty(struct table *table);
void table_add_integer(struct table *table, int64_t value);
void table_add_real(struct table *table, double value);      /* NAN and infinities become empty cells */
void table_add_text(struct table *table, const char *value); /* copied; NULL becomes an empty cell */
void table_add_text_bytes(struct table *table, const char *value, size_t size);
void table_add_cell(struct table *table,
                    const struct table_cell *cell); /* a copy of another table's, marked as it is */

/* Begins a block with the next row, in formats for people with a rule above it. */
void table_begin_block(struct table *table);

size_t table_rows(const struct table *table);
const struct table_cell *table_cell_at(const struct table *table, size_t row, size_t column);
bool table_column_is_numeric(const struct table *table, size_t column); /* it has a number and no text */
void table_clear(struct table *table);                                  /* removes the rows and keeps the columns */
void table_keep(struct table *table, const bool *keep);                 /* [columns] removes the other columns */
void table_free(struct table *table);

/* NAN where the cell has no number. */
double table_cell_real(const struct table_cell *cell);

/* --- For people --- */

enum { TABLE_NUMBER = 400 /* the longest double with decimals */ };
void table_number(double value, int decimals, char number[TABLE_NUMBER]);

/* The cell's own text, or its number written into number. */
const char *table_cell_text(const struct table_cell *cell, int decimals, char number[TABLE_NUMBER]);

enum table_format { TABLE_TEXT, TABLE_CSV, TABLE_JSON, TABLE_MARKDOWN, TABLE_LATEX };

/* Appends the whole table, final newline included, to text. colour (escape sequences) matters to TABLE_TEXT alone.
 * Characters that a terminal or a spreadsheet would obey are escaped (core/text.h); only JSON keeps a text
 * exactly. */
void table_render(const struct table *table, enum table_format format, bool colour, struct text *text);

/* Aligned text for a terminal of this many columns: columns are left out (their titles are appended to left_out), and texts
 * take several lines. No number is cut. */
void table_render_within(const struct table *table, size_t width, bool colour, struct text *text,
                         struct text *left_out);
