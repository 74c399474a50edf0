/* Questions: which statements answer, and how their rows are shown. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/embedded.h"
#include "core/text.h"
#include "results/query/internal.h"
#include "results/query/question.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(published_files);

/* --- Rows as they are shown --- */

/* Columns of the rows that have a part in how they are shown; SIZE_MAX: none. */
struct layout {
    const struct question *question;
    const struct query_filter *filter; /* NULL: none */
    const struct table *rows;
    size_t title, value, mark, block;
    const char **titles; /* of columns that come out of rows */
    size_t wide;         /* how many there are */
    size_t *place;       /* [rows]: of each row's value among them, or SIZE_MAX */
    size_t *from;        /* [wide]: rows of the values of one row that is shown, or SIZE_MAX */
};

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

void query_copy_cell(struct table *table, const struct table_cell *cell)
{
    if (cell->kind == CELL_INTEGER)
        table_add_integer(table, cell->integer);
    else if (cell->kind == CELL_REAL)
        table_add_real(table, cell->real);
    else
        table_add_text(table, cell->kind == CELL_TEXT ? cell->text : NULL);
    table->cell[table->count - 1].marked = cell->marked;
}

static bool same_as_before(const struct layout *layout, size_t row, size_t column)
{
    return query_same_cell(table_cell_at(layout->rows, row, column), table_cell_at(layout->rows, row - 1, column));
}

static bool continues(const struct layout *layout, size_t row)
{
    for (size_t column = 0; row > 0 && column < layout->rows->columns; column++)
        if (column != layout->title && column != layout->value && column != layout->mark &&
            !same_as_before(layout, row, column))
            return false;
    return row > 0 && layout->title != SIZE_MAX;
}

/* What the head says of a column; wide: one that comes out of rows. */
static const struct question_column *shown_as(const struct layout *layout, const char *title, bool wide)
{
    const struct question *q = layout->question;
    for (size_t i = 0; i < q->columns; i++)
        if (strcmp(q->column[i].name, title) == 0)
            return &q->column[i];
    return wide ? shown_as(layout, "*", false) : NULL;
}

static bool is_hidden(const struct layout *layout, const char *title)
{
    const struct question_column *shown = shown_as(layout, title, false);
    return shown != NULL && (shown->hidden || (shown->of_dataset && layout->filter->dataset == NULL));
}

static void add_column(const struct layout *layout, struct table *table, const char *title, bool wide)
{
    const struct question_column *shown = shown_as(layout, title, wide);
    struct table_column about = shown != NULL ? shown->about : *question_usual_column(title);
    about.title = title;
    if (layout->filter->published)
        about.best = BEST_NONE;
    if (wide || !is_hidden(layout, title))
        table_add_column(table, &about);
}

/* The titles of columns that come out of rows, in the order of the rows: of a first one, and what later ones add. A title
 * that a row has twice is two columns. */
static void find_titles(struct layout *layout)
{
    size_t count = table_rows(layout->rows), group = 0, *used = layout->from;
    for (size_t row = 0; layout->title != SIZE_MAX && row < count; row++) {
        const struct table_cell *title = table_cell_at(layout->rows, row, layout->title);
        size_t place = title->kind == CELL_TEXT ? 0 : SIZE_MAX;
        group += !continues(layout, row);
        while (place < layout->wide && (used[place] == group || strcmp(layout->titles[place], title->text) != 0))
            place++;
        if (place == layout->wide)
            layout->titles[layout->wide++] = title->text;
        if (place != SIZE_MAX)
            used[place] = group;
        layout->place[row] = place;
    }
}

/* Rows [first, end) become one. */
static void add_shown_row(const struct layout *layout, size_t first, size_t end, struct table *table)
{
    for (size_t i = 0; i < layout->wide; i++)
        layout->from[i] = SIZE_MAX;
    for (size_t row = first; layout->wide > 0 && row < end; row++)
        if (layout->place[row] != SIZE_MAX)
            layout->from[layout->place[row]] = row;
    for (size_t column = 0; column < layout->rows->columns; column++) {
        for (size_t i = 0; column == layout->title && i < layout->wide; i++)
            if (layout->from[i] != SIZE_MAX)
                query_copy_cell(table, table_cell_at(layout->rows, layout->from[i], layout->value));
            else
                table_add_empty(table);
        if (column != layout->title && column != layout->value &&
            !is_hidden(layout, layout->rows->column[column].title))
            query_copy_cell(table, table_cell_at(layout->rows, first, column));
    }
}

static void show(const struct layout *layout, struct table *table)
{
    size_t count = table_rows(layout->rows);
    for (size_t column = 0; column < layout->rows->columns; column++) {
        for (size_t i = 0; column == layout->title && i < layout->wide; i++)
            add_column(layout, table, layout->titles[i], true);
        if (column != layout->title && column != layout->value)
            add_column(layout, table, layout->rows->column[column].title, false);
    }
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && continues(layout, end); end++)
            ;
        if (layout->block != SIZE_MAX && first > 0 && !same_as_before(layout, first, layout->block))
            table_begin_block(table);
        add_shown_row(layout, first, end, table);
    }
}

status query_show(const struct question *question, const struct table *rows, const struct query_filter *filter,
                  struct table *table, struct error *error)
{
    struct layout layout = {.question = question,
                            .filter = filter != NULL ? filter : &(struct query_filter){0},
                            .rows = rows,
                            .title = query_column(rows, question->wide_title),
                            .value = query_column(rows, question->wide_value),
                            .mark = query_column(rows, question->mark),
                            .block = query_column(rows, question->block)};
    const char *const named[] = {question->wide_title, question->wide_value, question->block};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (named[i] != NULL && query_column(rows, named[i]) == SIZE_MAX)
            return error_set(error, ERROR_ARGUMENT, "question %s: its answer lacks a column that its head names: %s",
                             question->name, named[i]);
    size_t count = table_rows(rows) + 1;
    layout.titles = xcalloc(count, sizeof *layout.titles);
    layout.place = xcalloc(count, sizeof *layout.place);
    layout.from = xcalloc(count, sizeof *layout.from);
    find_titles(&layout);
    show(&layout, table);
    free(layout.titles);
    free(layout.place);
    free(layout.from);
    return OK;
}

/* --- Questions --- */

status published_attach(struct store *store, struct error *error)
{
    if (store->published)
        return OK;
    TRY(database_execute(store->database, "SAVEPOINT published", error));
    status result = OK;
    for (const struct embedded_file *file = published_files; file->name && result == OK; file++)
        result = database_execute(store->database, (const char *)file->data, error);
    if (result != OK) {
        database_execute(store->database, "ROLLBACK TO published; RELEASE published", NULL);
        return error_context(error, "published numbers");
    }
    store->published = true;
    return database_execute(store->database, "RELEASE published", error);
}

/* The settings of --by, each of which some run has. */
static status note_asked(struct store *store, const char *by, struct error *error)
{
    for (size_t size; by != NULL && *by != 0; by += size + strspn(by + size, ", ")) {
        size = strcspn(by, ", ");
        char *key = xstrndup(by, size);
        status result = query_ask_key(store, key, error);
        free(key);
        TRY(result);
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
    if (result == OK && table_rows(&table) > 0 && table_cell_at(&table, 0, 0)->kind == CELL_TEXT)
        *text = xstrdup(table_cell_at(&table, 0, 0)->text);
    table_free(&table);
    return result;
}

/* Values whose row says so stand out. */
static void mark_values(const struct question *question, struct table *rows)
{
    size_t mark = query_column(rows, question->mark), value = query_column(rows, question->wide_value);
    for (size_t row = 0; mark != SIZE_MAX && value != SIZE_MAX && row < table_rows(rows); row++) {
        const struct table_cell *says = table_cell_at(rows, row, mark);
        rows->cell[row * rows->columns + value].marked = says->kind == CELL_INTEGER && says->integer != 0;
    }
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
    if (result == OK)
        mark_values(question, &rows);
    NEXT(result, query_show(question, &rows, filter, table, error));
    table_free(&rows);
    NEXT(result, ask_text(store, note != NULL ? question->note : NULL, filter, &text, error));
    if (result == OK && text != NULL)
        text_add(note, "%s", text);
    free(text);
    return result;
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
    const char **names = xcalloc(questions->count + 2, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < questions->count; i++)
        if (*questions->question[i].title != 0)
            names[count++] = questions->question[i].name;
    const char *nearest = nearest_word(name, names, count);
    names[count++] = "a file of SQL";
    names[count++] = "or SQL";
    error_unknown_word_near(error, "query", "question", name, nearest, names, count);
    free(names);
    return ERROR_ARGUMENT;
}
