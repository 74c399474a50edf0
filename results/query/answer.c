/* Answers of questions and of SQL as tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "results/query/internal.h"
#include "results/query/published.h"
#include "results/query/question.h"
#include "results/store/store_internal.h"

#define BYTES_LIMIT ((size_t)256 << 20)

/* --- Rows as they come --- */

static void add_blob(struct table *table, const uint8_t *data, size_t size)
{
    struct text text = {0};
    text_add(&text, "x'");
    for (size_t i = 0; i < size; i++)
        text_add(&text, "%02x", data[i]);
    text_add(&text, "'");
    table->failed |= text.failed;
    table_add_text(table, text.data);
    text_free(&text);
}

static void add_value(struct table *table, const struct value *value)
{
    switch (value->kind) {
    case VALUE_INTEGER:
        table_add_integer(table, value->integer);
        break;
    case VALUE_REAL:
        table_add_real(table, value->real);
        break;
    case VALUE_TEXT:
        table_add_text_bytes(table, value->bytes.data, value->bytes.size);
        break;
    case VALUE_BLOB:
        add_blob(table, value->bytes.data, value->bytes.size);
        break;
    case VALUE_NULL:
        table_add_empty(table);
        break;
    }
}

/* What a value takes as text; blobs become hexadecimal. */
static size_t text_size(const struct value *value)
{
    if (value->kind == VALUE_TEXT)
        return value->bytes.size;
    return value->kind == VALUE_BLOB ? 2 * value->bytes.size + 3 : 0;
}

static status add_row(const struct store *store, struct statement *statement, struct table *table, size_t *bytes,
                      struct error *error)
{
    for (size_t column = 0; column < table->columns; column++) {
        struct value value = statement_value(statement, column);
        *bytes += text_size(&value);
        if (table->count >= QUERY_CELLS_LIMIT || *bytes > BYTES_LIMIT)
            return error_set(error, ERROR_ARGUMENT,
                             "%s: the answer has more than %d cells or %zu bytes; ask for less, for example with LIMIT",
                             store_path(store), QUERY_CELLS_LIMIT, BYTES_LIMIT);
        add_value(table, &value);
    }
    if (table->failed)
        return error_set(error, ERROR_MEMORY, "%s: out of memory after %zu rows", store_path(store), table_rows(table));
    return OK;
}

/* Appends the answer of a statement that is bound. */
static status fill(const struct store *store, struct statement *statement, struct table *table, struct error *error)
{
    size_t bytes = 0;
    for (size_t column = 0; column < statement_columns(statement); column++) {
        struct table_column about = *question_usual_column(statement_title(statement, column));
        about.title = statement_title(statement, column);
        table_add_column(table, &about);
    }
    for (bool row;;) {
        TRY(statement_step(statement, &row, error));
        if (!row)
            return OK;
        TRY(add_row(store, statement, table, &bytes, error));
    }
}

status query_sql(struct store *store, const char *sql, struct table *table, struct error *error)
{
    struct statement *statement;
    TRY(statement_open_reader(&statement, store->database, sql, error));
    status result = fill(store, statement, table, error);
    statement_close(statement);
    return result;
}

status query_rows(struct store *store, const char *sql, const struct query_filter *filter, struct table *table,
                  struct error *error)
{
    const struct named_value values[] = {{":dataset", value_text(filter->dataset)},
                                         {":setting", value_text(filter->setting)},
                                         {":baseline", value_text(filter->baseline)},
                                         {":published", value_integer(filter->published)}};
    struct statement *statement;
    TRY(statement_open_reader(&statement, store->database, sql, error));
    status result = statement_bind_named(statement, values, sizeof values / sizeof *values, error);
    NEXT(result, fill(store, statement, table, error));
    statement_close(statement);
    return result;
}

/* --- Rows as they are shown --- */

/* Columns of the rows that have a part in how they are shown; SIZE_MAX: none. */
struct layout {
    const struct question *question;
    const struct table *rows;
    size_t title, value, block;
    size_t wide; /* columns that come out of rows */
    bool plain;  /* nothing stands out */
};

static const struct question_column *shown_as(const struct question *q, const char *title)
{
    for (size_t i = 0; i < q->columns; i++)
        if (strcmp(q->column[i].name, title) == 0)
            return &q->column[i];
    return NULL;
}

size_t query_column(const struct table *rows, const char *name)
{
    for (size_t column = 0; name != NULL && column < rows->columns; column++)
        if (strcmp(rows->column[column].title, name) == 0)
            return column;
    return SIZE_MAX;
}

bool query_same_cell(const struct table_cell *a, const struct table_cell *b)
{
    if (a->kind != b->kind || a->kind == CELL_EMPTY)
        return a->kind == b->kind;
    return a->kind == CELL_TEXT      ? strcmp(a->text, b->text) == 0
           : a->kind == CELL_INTEGER ? a->integer == b->integer
                                     : a->real == b->real;
}

static bool continues(const struct layout *layout, size_t row)
{
    if (row == 0 || layout->title == SIZE_MAX)
        return false;
    for (size_t column = 0; column < layout->rows->columns; column++)
        if (column != layout->title && column != layout->value &&
            !query_same_cell(table_cell_at(layout->rows, row, column), table_cell_at(layout->rows, row - 1, column)))
            return false;
    return true;
}

static void add_column(const struct layout *layout, struct table *table, const char *title, bool wide)
{
    const struct question_column *shown = shown_as(layout->question, title);
    if (shown == NULL && wide)
        shown = shown_as(layout->question, "*");
    struct table_column about = shown != NULL ? shown->about : *question_usual_column(title);
    about.title = title;
    if (layout->plain)
        about.best = BEST_NONE;
    if (shown == NULL || !shown->hidden)
        table_add_column(table, &about);
}

static bool is_hidden(const struct layout *layout, size_t column)
{
    const struct question_column *shown = shown_as(layout->question, layout->rows->column[column].title);
    return shown != NULL && shown->hidden;
}

/* The titles of columns that come out of rows, in the order of the rows: of a first one, and what later ones add. A title
 * that a row has twice is two columns. titles [rows], used [rows]: room. */
static size_t find_place(const char **titles, const size_t *used, size_t count, size_t group, const char *title)
{
    for (size_t i = 0; i < count; i++)
        if (used[i] != group && strcmp(titles[i], title) == 0)
            return i;
    return count;
}

/* place [rows]: of each row's value. */
static void find_titles(struct layout *layout, const char **titles, size_t *used, size_t *place)
{
    size_t group = 0;
    for (size_t row = 0; layout->title != SIZE_MAX && row < table_rows(layout->rows); row++) {
        const struct table_cell *title = table_cell_at(layout->rows, row, layout->title);
        group += !continues(layout, row);
        place[row] = SIZE_MAX;
        if (title->kind != CELL_TEXT)
            continue;
        place[row] = find_place(titles, used, layout->wide, group, title->text);
        if (place[row] == layout->wide)
            titles[layout->wide++] = title->text;
        used[place[row]] = group;
    }
}

void query_copy_cell(struct table *table, const struct table_cell *cell)
{
    if (cell->kind == CELL_INTEGER)
        table_add_integer(table, cell->integer);
    else if (cell->kind == CELL_REAL)
        table_add_real(table, cell->real);
    else
        table_add_text(table, cell->kind == CELL_TEXT ? cell->text : NULL);
}

/* Rows [first, end) become one. from [wide]: room. */
static void add_shown_row(const struct layout *layout, size_t first, size_t end, const size_t *place, size_t *from,
                          struct table *table)
{
    for (size_t i = 0; i < layout->wide; i++)
        from[i] = SIZE_MAX;
    for (size_t row = first; layout->wide > 0 && row < end; row++)
        if (place[row] != SIZE_MAX)
            from[place[row]] = row;
    for (size_t column = 0; column < layout->rows->columns; column++) {
        for (size_t i = 0; column == layout->title && i < layout->wide; i++)
            if (from[i] != SIZE_MAX)
                query_copy_cell(table, table_cell_at(layout->rows, from[i], layout->value));
            else
                table_add_empty(table);
        if (column != layout->title && column != layout->value && !is_hidden(layout, column))
            query_copy_cell(table, table_cell_at(layout->rows, first, column));
    }
}

static bool begins_block(const struct layout *layout, size_t row)
{
    return layout->block != SIZE_MAX && row > 0 &&
           !query_same_cell(table_cell_at(layout->rows, row, layout->block),
                            table_cell_at(layout->rows, row - 1, layout->block));
}

static void show(struct layout *layout, const char **titles, size_t *room, struct table *table)
{
    size_t count = table_rows(layout->rows), *place = room + count, *from = room;
    find_titles(layout, titles, room, place);
    for (size_t column = 0; column < layout->rows->columns; column++) {
        for (size_t i = 0; column == layout->title && i < layout->wide; i++)
            add_column(layout, table, titles[i], true);
        if (column != layout->title && column != layout->value)
            add_column(layout, table, layout->rows->column[column].title, false);
    }
    for (size_t first = 0, end; first < count && !table->failed; first = end) {
        for (end = first + 1; end < count && continues(layout, end); end++)
            ;
        if (begins_block(layout, first))
            table_begin_block(table);
        add_shown_row(layout, first, end, place, from, table);
    }
}

status query_show(const struct question *question, const struct table *rows, bool plain, struct table *table,
                  struct error *error)
{
    struct layout layout = {.question = question,
                            .rows = rows,
                            .title = query_column(rows, question->wide_title),
                            .value = query_column(rows, question->wide_value),
                            .block = query_column(rows, question->block),
                            .plain = plain};
    if ((question->wide_title != NULL && (layout.title == SIZE_MAX || layout.value == SIZE_MAX)) ||
        (question->block != NULL && layout.block == SIZE_MAX))
        return error_set(error, ERROR_ARGUMENT, "question %s: its answer lacks a column that its head names: %s",
                         question->name, layout.block == SIZE_MAX ? question->block : question->wide_title);
    size_t count = table_rows(rows) + 1, *room = calloc(count, 2 * sizeof *room);
    const char **titles = calloc(count, sizeof *titles);
    if (room != NULL && titles != NULL)
        show(&layout, titles, room, table);
    else
        table->failed = true;
    free(room);
    free(titles);
    return table->failed ? error_set(error, ERROR_MEMORY, "question %s: out of memory", question->name) : OK;
}

/* --- Questions --- */

/* The settings of --by, each of which some run has. */
static status note_asked(struct store *store, const char *by, struct error *error)
{
    for (size_t size; by != NULL && *by != 0; by += size + strspn(by + size, ", ")) {
        char key[200];
        size = strcspn(by, ", ");
        snprintf(key, sizeof key, "%.*s", (int)size, by);
        TRY(query_check_key(store, "by", key, error));
        TRY(database_run(store->database, "INSERT INTO temp.asked (key) VALUES (?1)", VALUES(value_text(key)), error));
    }
    return OK;
}

/* The first text of an answer, which the caller frees; NULL: none. */
static status ask_text(struct store *store, const char *sql, const struct query_filter *filter, char **text,
                       struct error *error)
{
    struct table table = {0};
    *text = NULL;
    if (sql == NULL)
        return OK;
    status result = query_rows(store, sql, filter, &table, error);
    if (result == OK && table_rows(&table) > 0 && table_cell_at(&table, 0, 0)->kind == CELL_TEXT) {
        *text = strdup(table_cell_at(&table, 0, 0)->text);
        result = *text != NULL ? OK : error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
    }
    table_free(&table);
    return result;
}

static status answer(struct store *store, const struct question *question, const struct query_filter *filter,
                     struct table *table, struct text *note, struct error *error)
{
    struct table rows = {0};
    char *text;
    TRY(ask_text(store, question->refuse, filter, &text, error));
    if (text != NULL) {
        error_set(error, ERROR_ARGUMENT, "%s: %s", store_path(store), text);
        free(text);
        return ERROR_ARGUMENT;
    }
    status result = query_rows(store, question->answer, filter, &rows, error);
    NEXT(result, query_show(question, &rows, filter->published, table, error));
    table_free(&rows);
    if (result != OK || note == NULL)
        return result;
    TRY(ask_text(store, question->note, filter, &text, error));
    if (text != NULL)
        text_add(note, "%s", text);
    free(text);
    return OK;
}

status query_ask(struct store *store, const struct questions *questions, const struct question *question,
                 const struct query_filter *filter, struct table *table, struct text *note, struct error *error)
{
    char *other;
    TRY(published_attach(store, error));
    TRY(query_choose(store, filter, error));
    TRY(note_asked(store, filter->by, error));
    TRY(ask_text(store, question->instead, filter, &other, error));
    const struct question *instead = other != NULL ? questions_find(questions, other) : question;
    if (instead == NULL)
        error_set(error, ERROR_ARGUMENT, "question %s: there is no question \"%.60s\"", question->name, other);
    free(other);
    return instead != NULL ? answer(store, instead, filter, table, note, error) : ERROR_ARGUMENT;
}

status query_named(struct store *store, const char *name, const struct query_filter *filter, struct table *table,
                   struct error *error)
{
    struct questions questions;
    status result = questions_open(&questions, NULL, error);
    const struct question *question = result == OK ? questions_find(&questions, name) : NULL;
    if (result == OK && question == NULL)
        result = query_unknown(&questions, name, error);
    NEXT(result, query_ask(store, &questions, question, filter, table, NULL, error));
    questions_close(&questions);
    return result;
}

status query_unknown(const struct questions *questions, const char *name, struct error *error)
{
    const char **names = calloc(questions->count + 1, sizeof *names);
    struct text known = {0};
    size_t count = 0;
    for (size_t i = 0; names != NULL && i < questions->count; i++) {
        if (*questions->question[i].title == 0)
            continue;
        names[count++] = questions->question[i].name;
        text_add(&known, "%s%s", count > 1 ? ", " : "", questions->question[i].name);
    }
    const char *nearest = names != NULL ? nearest_word(name, names, count) : NULL;
    error_set(error, ERROR_ARGUMENT, "unknown question \"%.40s\"%s%s%s; expected one of: %s, a file of SQL, or SQL",
              name, nearest != NULL ? " (did you mean \"" : "", nearest != NULL ? nearest : "",
              nearest != NULL ? "\"?)" : "", known.data != NULL ? known.data : "those of the list");
    text_free(&known);
    free(names);
    return ERROR_ARGUMENT;
}

status query_check_chosen(struct store *store, const struct query_filter *filter, struct error *error)
{
    int64_t runs = 0;
    TRY(query_choose(store, filter, error));
    TRY(database_integer(store->database, "SELECT count(*) FROM temp.chosen", &runs, error));
    if (runs == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: no run is chosen; `mtil query runs` lists those there are",
                         store_path(store));
    return OK;
}

status query_summary(struct store *store, int64_t run, struct table *table, struct error *error)
{
    return query_named(store, "end-of-run", &(struct query_filter){.run = run}, table, error);
}
