/* Questions: which statements answer, and how their rows are shown; numbers that papers print: results/published/. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "results/query/internal.h"
#include "results/query/question.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(published_files);
EMBEDDED_FILES(published_views);

/* --- Numbers that papers print --- */

/* A file is a table, and the keys of its lines are the columns. */
#define LINES "CREATE TEMP TABLE published_lines (file, place, line, PRIMARY KEY (file, place)) WITHOUT ROWID"
#define ADD_LINES                                                                                                      \
    "INSERT INTO temp.published_lines SELECT replace(?1, '.jsonl', ''), key + 1, value "                               \
    "FROM json_each('[' || replace(rtrim(?2, char(10)), char(10), ',') || ']')"
#define TABLES                                                                                                         \
    "SELECT 'CREATE TEMP TABLE published_' || file || ' AS SELECT place AS row' || "                                   \
    "group_concat(', json_extract(line, ''$.' || key || ''') AS \"' || key || '\"', '') || "                           \
    "' FROM published_lines WHERE file = ''' || file || ''' '"                                                         \
    "FROM (SELECT file, key FROM published_lines, json_each(line) GROUP BY file, key ORDER BY min(place), min(id)) "   \
    "GROUP BY file"

static status make_table(void *database, struct statement *row, struct error *error)
{
    return database_execute(database, statement_text(row, 0), error);
}

static status attach(struct database *database, struct error *error)
{
    TRY(database_execute(database, LINES, error));
    for (const struct embedded_file *file = published_files; file->name != NULL; file++)
        if (database_run(database, ADD_LINES, VALUES(value_text(file->name), value_text((const char *)file->data)),
                         error) != OK)
            return error_context(error, "%s", file->name);
    TRY(database_each(database, TABLES, NO_VALUES, make_table, database, error));
    return database_execute(database, (const char *)published_views->data, error);
}

status published_attach(struct store *store, struct error *error)
{
    if (store->published)
        return OK;
    TRY(database_execute(store->database, "SAVEPOINT published", error));
    if (attach(store->database, error) != OK) {
        database_execute(store->database, "ROLLBACK TO published; RELEASE published", NULL);
        return error_context(error, "published numbers");
    }
    store->published = true;
    return database_execute(store->database, "RELEASE published", error);
}

/* --- Rows as they are shown --- */

/* A part of a table; columns that have a part in how it is shown are SIZE_MAX where there is none. */
struct layout {
    const struct question *question;
    const struct query_filter *filter;
    const struct table *rows;
    size_t first, end, title, value, mark, block;
    enum { SHOWN, HIDDEN, ASIDE } * column; /* [columns]; aside: no part of the table */
    size_t *marks;                          /* [columns] "last marked" of "last"; SIZE_MAX: none */
    const char **titles;                    /* of columns that come out of rows */
    size_t wide;                            /* how many there are */
    size_t *place;                          /* [end − first]: of each row's value among them, or SIZE_MAX */
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

static bool same_as_before(const struct layout *layout, size_t row, size_t column)
{
    return query_same_cell(table_cell_at(layout->rows, row, column), table_cell_at(layout->rows, row - 1, column));
}

static bool continues(const struct layout *layout, size_t row)
{
    if (row == layout->first || layout->title == SIZE_MAX)
        return false;
    for (size_t column = 0; column < layout->rows->columns; column++)
        if (layout->column[column] != ASIDE && !same_as_before(layout, row, column))
            return false;
    return true;
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

static bool is_empty(const struct layout *layout, size_t column)
{
    for (size_t row = layout->first; row < layout->end; row++)
        if (table_cell_at(layout->rows, row, column)->kind != CELL_EMPTY)
            return false;
    return true;
}

/* The column whose values that are not 0 make those of this one stand out. */
static size_t mark_of(const struct table *rows, size_t column)
{
    OWNED char *name = path_format("%s marked", rows->column[column].title);
    return query_column(rows, name);
}

static void sort_columns(struct layout *layout)
{
    for (size_t column = 0; column < layout->rows->columns; column++)
        layout->marks[column] = mark_of(layout->rows, column);
    for (size_t column = 0; column < layout->rows->columns; column++) {
        const char *title = layout->rows->column[column].title;
        if (layout->marks[column] != SIZE_MAX)
            layout->column[layout->marks[column]] = ASIDE;
        const struct question_column *shown = shown_as(layout, title, false);
        if (column == layout->title || column == layout->value || column == layout->mark ||
            question_says(layout->question, title))
            layout->column[column] = ASIDE;
        else if (shown != NULL && (shown->hidden || (shown->of_dataset && layout->filter->dataset == NULL) ||
                                   (shown->optional && is_empty(layout, column))))
            layout->column[column] = HIDDEN;
    }
}

static void add_column(const struct layout *layout, struct table *table, const char *title, bool wide)
{
    const struct question_column *shown = shown_as(layout, title, wide);
    struct table_column about = shown != NULL ? shown->about : question_usual_column(title);
    about.title = title;
    table_add_column(table, &about);
}

static void add_columns(const struct layout *layout, struct table *table)
{
    for (size_t column = 0; column < layout->rows->columns; column++) {
        for (size_t i = 0; column == layout->title && i < layout->wide; i++)
            add_column(layout, table, layout->titles[i], true);
        if (layout->column[column] == SHOWN)
            add_column(layout, table, layout->rows->column[column].title, false);
    }
}

/* The titles of columns that come out of rows, in the order of the rows: of a first one, and what later ones add. A title
 * that a row has twice is two columns. */
static void find_titles(struct layout *layout)
{
    size_t line = 0;
    OWNED size_t *last = xcalloc(layout->end - layout->first + 1, sizeof *last);
    for (size_t row = layout->first; row < layout->end; row++) {
        const struct table_cell *title =
            layout->title != SIZE_MAX ? table_cell_at(layout->rows, row, layout->title) : NULL;
        size_t place = title != NULL && title->kind == CELL_TEXT ? 0 : SIZE_MAX;
        line += !continues(layout, row);
        while (place < layout->wide && (last[place] == line || strcmp(layout->titles[place], title->text) != 0))
            place++;
        if (place == layout->wide)
            layout->titles[layout->wide++] = title->text;
        if (place != SIZE_MAX)
            last[place] = line;
        layout->place[row - layout->first] = place;
    }
}

static void add_marked(const struct layout *layout, size_t row, size_t column, size_t mark, struct table *table)
{
    struct table_cell cell = {.kind = CELL_EMPTY};
    if (row != SIZE_MAX)
        cell = *table_cell_at(layout->rows, row, column);
    if (row != SIZE_MAX && mark != SIZE_MAX)
        cell.marked = table_cell_real(table_cell_at(layout->rows, row, mark)) > 0;
    table_add_cell(table, &cell);
}

/* value: the rows whose values stand in the columns that come out of rows; SIZE_MAX: none. */
static void add_line(const struct layout *layout, size_t row, const size_t *value, struct table *table)
{
    for (size_t column = 0; column < layout->rows->columns; column++) {
        for (size_t i = 0; column == layout->title && i < layout->wide; i++)
            add_marked(layout, value[i], layout->value, layout->mark, table);
        if (layout->column[column] == SHOWN)
            add_marked(layout, row, column, layout->marks[column], table);
    }
}

static void add_lines(const struct layout *layout, struct table *table)
{
    OWNED size_t *value = xcalloc(layout->wide + 1, sizeof *value);
    for (size_t line = layout->first, row = line; line < layout->end; line = row) {
        for (size_t i = 0; i < layout->wide; i++)
            value[i] = SIZE_MAX;
        for (; row == line || (row < layout->end && continues(layout, row)); row++)
            if (layout->place[row - layout->first] != SIZE_MAX)
                value[layout->place[row - layout->first]] = row;
        if (line > layout->first && layout->block != SIZE_MAX && !same_as_before(layout, line, layout->block))
            table_begin_block(table);
        add_line(layout, line, value, table);
    }
}

status query_show(const struct question *question, const struct table *rows, size_t first, size_t end,
                  const struct query_filter *filter, struct table *table, struct error *error)
{
    struct layout layout = {.question = question,
                            .filter = filter != NULL ? filter : &(struct query_filter){0},
                            .rows = rows,
                            .first = first,
                            .end = end,
                            .title = query_column(rows, question->wide_title),
                            .value = query_column(rows, question->wide_value),
                            .mark = query_column(rows, question->mark),
                            .block = query_column(rows, question->block)};
    const char *const named[] = {question->wide_title, question->wide_value, question->block};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (named[i] != NULL && query_column(rows, named[i]) == SIZE_MAX)
            return error_set(error, ERROR_ARGUMENT, "question %s: its answer lacks a column that its head names: %s",
                             question->name, named[i]);
    layout.column = xcalloc(rows->columns, sizeof *layout.column);
    layout.marks = xcalloc(rows->columns, sizeof *layout.marks);
    layout.titles = xcalloc(end - first + 1, sizeof *layout.titles);
    layout.place = xcalloc(end - first + 1, sizeof *layout.place);
    sort_columns(&layout);
    find_titles(&layout);
    add_columns(&layout, table);
    add_lines(&layout, table);
    free(layout.column);
    free(layout.marks);
    free(layout.titles);
    free(layout.place);
    return OK;
}

/* --- Questions --- */

/* The settings of --by, each of which some run has. */
static status note_asked(struct store *store, const char *by, struct error *error)
{
    for (size_t size; by != NULL && *by != 0; by += size + strspn(by + size, ", ")) {
        size = strcspn(by, ", ");
        OWNED char *key = xstrndup(by, size);
        TRY(query_ask_key(store, key, error));
    }
    return OK;
}

/* The first text of an answer, which the caller frees; NULL: none. */
static status ask_text(struct store *store, const char *sql, const struct query_filter *filter, char **text,
                       struct error *error)
{
    SCOPED(table_free) struct table table = {0};
    *text = NULL;
    if (sql == NULL)
        return OK;
    TRY(query_rows(store, sql, filter, &table, error));
    if (table_rows(&table) > 0 && table_cell_at(&table, 0, 0)->kind == CELL_TEXT)
        *text = xstrdup(table_cell_at(&table, 0, 0)->text);
    return OK;
}

/* Why an answer has no rows. */
static status explain(struct store *store, const struct question *question, struct text *note, struct error *error)
{
    int64_t all, chosen;
    TRY(database_integer(store->database, "SELECT count(*) FROM runs", &all, error));
    TRY(database_integer(store->database, "SELECT count(*) FROM chosen", &chosen, error));
    if (all == 0)
        text_add(note, "there are no runs yet");
    else if (chosen == 0)
        text_add(note, "no run passes these filters; mtil query runs lists those there are");
    else
        text_add(note, "%" PRId64 " run%s chosen, without such rows%s%s", chosen, chosen == 1 ? " is" : "s are",
                 question->empty != NULL ? ": " : "", question->empty != NULL ? question->empty : "");
    return OK;
}

static status show_rows(struct store *store, const struct question *question, const struct query_filter *filter,
                        struct table *table, struct error *error)
{
    SCOPED(table_free) struct table rows = {0};
    TRY(query_rows(store, question->answer, filter, &rows, error));
    return query_show(question, &rows, 0, table_rows(&rows), filter, table, error);
}

static status answer(struct store *store, const struct question *question, const struct query_filter *filter,
                     struct table *table, struct text *note, struct error *error)
{
    OWNED char *refused = NULL, *noted = NULL;
    if (strstr(question->answer, "published") != NULL)
        TRY(published_attach(store, error));
    if (strstr(question->answer, "labels") != NULL)
        TRY(query_label(store, error));
    TRY(ask_text(store, question->refuse, filter, &refused, error));
    if (refused != NULL)
        return error_set(error, ERROR_ARGUMENT, "%s: %s", store_path(store), refused);
    TRY(show_rows(store, question, filter, table, error));
    TRY(ask_text(store, note != NULL ? question->note : NULL, filter, &noted, error));
    if (noted != NULL)
        text_add(note, "%s", noted);
    else if (note != NULL && table->count == 0 && strstr(question->answer, "chosen") != NULL)
        return explain(store, question, note, error);
    return OK;
}

/* While a question about some of the runs is answered, all views read the evaluations of these alone, so that it takes time in
 * proportion to them: a view that groups evaluations by run is computed whole, whatever it is joined with. */
static status narrow(struct store *store, struct error *error)
{
    int64_t some;
    TRY(database_integer(store->database, "SELECT (SELECT count(*) FROM chosen) < (SELECT count(*) FROM runs)", &some,
                         error));
    if (!some)
        return OK;
    TRY(store_hide_views(store, error));
    return database_execute(store->database,
                            "CREATE TEMP VIEW evaluations AS SELECT stored.* FROM temp.chosen "
                            "CROSS JOIN main.evaluations AS stored USING (run)",
                            error);
}

static status widen(struct store *store, struct error *error)
{
    return database_execute(store->database, "DROP VIEW IF EXISTS temp.evaluations", error);
}

status query_ask(struct store *store, const struct questions *questions, const struct question *question,
                 const struct query_filter *filter, struct table *table, struct text *note, struct error *error)
{
    OWNED char *other = NULL;
    TRY(query_choose(store, filter, error));
    TRY(note_asked(store, filter->by, error));
    TRY(ask_text(store, question->instead, filter, &other, error));
    const struct question *instead = other != NULL ? questions_find(questions, other) : question;
    if (instead == NULL)
        return error_set(error, ERROR_ARGUMENT, "question %s: there is no question \"%.60s\"", question->name, other);
    status result = narrow(store, error);
    NEXT(result, answer(store, instead, filter, table, note, error));
    status widened = widen(store, result == OK ? error : NULL);
    return result == OK ? widened : result;
}

status query_named(struct store *store, const char *name, const struct query_filter *filter, struct table *table,
                   struct error *error)
{
    SCOPED(questions_close) struct questions questions = {0};
    TRY(questions_open(&questions, NULL, error));
    const struct question *question = questions_find(&questions, name);
    if (question == NULL)
        return query_unknown(&questions, name, error);
    return query_ask(store, &questions, question, filter, table, NULL, error);
}

status query_unknown(const struct questions *questions, const char *name, struct error *error)
{
    OWNED const char **names = xcalloc(questions->count + 2, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < questions->count; i++)
        if (*questions->question[i].title != 0)
            names[count++] = questions->question[i].name;
    const char *nearest = nearest_word(name, names, count);
    names[count++] = "a file of SQL";
    names[count++] = "or SQL";
    error_unknown_word_near(error, "query", "question", name, nearest, names, count);
    return ERROR_ARGUMENT;
}
