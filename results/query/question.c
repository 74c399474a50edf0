#include "results/query/question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "results/metrics.h"

EMBEDDED_FILES(question_files);
EMBEDDED_FILES(page_questions);
EMBEDDED_FILES(part_files);

#define SUFFIX ".sql"
#define MARK "-- include: "

bool question_is_file(const char *word)
{
    size_t length = strlen(word);
    return length > strlen(SUFFIX) && strcmp(word + length - strlen(SUFFIX), SUFFIX) == 0;
}

struct table_column question_usual_column(const char *title)
{
    /* What says least of a run goes first where a terminal is too narrow. */
    static const char *const extra[] = {"host",  "selection", "model",    "selector", "setting",       "order",
                                        "suite", "method",    "finished", "policy",   "configuration", "folder"};
    struct table_column about = {.decimals = DECIMALS_ALL};
    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++)
        if (strcmp(extra[i], title) == 0)
            about.extra = (int)i + 1;
    if (metric_exists(title) || text_has_word("right_router|unseen_zero_shot|share|seconds|images_per_second", title))
        about.decimals = 1;
    else if (text_has_word("seconds_per_iteration", title))
        about.decimals = 3;
    return about;
}

bool question_says(const struct question *question, const char *column)
{
    char braced[80];
    snprintf(braced, sizeof braced, "{%.70s}", column);
    bool says = text_has_word("choice|framed|extra", column) || strstr(question->title, braced) != NULL;
    for (size_t key = 0; key < QUESTION_KEYS; key++)
        says |= question->shown[key] != NULL && strstr(question->shown[key], braced) != NULL;
    return says && question->shown[ON_PAGE] != NULL;
}

/* --- One file --- */

/* A text that is being read. */
struct reader {
    struct question *question;
    const char *where;
    size_t line;
    bool past_head;
    char **statement; /* of the question, to which the SQL that is read belongs */
    struct text sql;
};

static status damaged(const struct reader *reader, const char *expected, const char *found, struct error *error)
{
    return error_set(error, ERROR_ARGUMENT, "%s:%zu: expected %s, found \"%.60s\"", reader->where, reader->line,
                     expected, found);
}

/* The next word of a line, or what is within quotes; the line moves on, behind a comma, too. NULL: there is none. */
static char *next_word(char **line, bool *comma)
{
    char *word = *line + strspn(*line, " \t");
    bool quoted = *word == '"';
    word += quoted;
    char *end = word + strcspn(word, quoted ? "\"" : " \t,"), *rest = end + (quoted && *end != 0);
    if (end == word)
        return NULL;
    *comma = *rest == ',';
    *line = rest + (*rest != 0);
    *end = 0;
    return word;
}

#define COLUMN_WORDS "once, hidden, of-dataset, optional, extra, left, right or a number of decimals"

enum { EXTRA_MOST = 1000 }; /* columns of a head */

static bool read_word(const struct question *question, struct question_column *column, const char *word)
{
    struct table_column *about = &column->about;
    int64_t decimals;
    const struct {
        const char *word;
        bool *flag;
    } flags[] = {{"once", &about->once},
                 {"hidden", &column->hidden},
                 {"of-dataset", &column->of_dataset},
                 {"optional", &column->optional}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(word, flags[i].word) == 0)
            return *flags[i].flag = true;
    if (parse_integer(word, &decimals) && decimals >= 0 && decimals <= 17)
        about->decimals = (int)decimals;
    else if (text_has_word("left|right", word))
        about->align = *word == 'l' ? ALIGN_LEFT : ALIGN_RIGHT;
    else if (strcmp(word, "extra") == 0)
        about->extra = EXTRA_MOST - (int)(column - question->column);
    else
        return false;
    return true;
}

/* Names, separated by commas, each in quotes if it has a blank or a comma; then words. */
static status read_columns(const struct reader *reader, char *value, struct error *error)
{
    struct question *q = reader->question;
    size_t first = q->columns;
    char *word;
    for (bool comma = true; comma;) {
        if ((word = next_word(&value, &comma)) == NULL)
            return damaged(reader, "the name of a column", "", error);
        GROW(q->column, q->columns);
        q->column[q->columns++] = (struct question_column){.name = xstrdup(word), .about = question_usual_column(word)};
    }
    for (bool comma; (word = next_word(&value, &comma)) != NULL;)
        for (size_t i = first; i < q->columns; i++)
            if (!read_word(q, &q->column[i], word))
                return damaged(reader, COLUMN_WORDS, word, error);
    return OK;
}

/* Where a question keeps the text of a key of its head; NULL: there is no such key. */
static char **text_of(struct question *q, const char *key)
{
    static const char *const shown[QUESTION_KEYS] = {
        [ON_PAGE] = "section",    [ON_DRAW] = "draw",       [ON_NAME] = "name",    [ON_CHOICE] = "choice",
        [ON_CAPTION] = "caption", [ON_DETAILS] = "details", [ON_X] = "x",          [ON_Y] = "y",
        [ON_VALUE] = "value",     [ON_RANGE] = "range",     [ON_FRAMED] = "framed"};
    const struct {
        const char *key;
        char **text;
    } others[] = {{"title", &q->title}, {"block", &q->block}, {"mark", &q->mark}, {"empty", &q->empty}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(key, others[i].key) == 0)
            return others[i].text;
    for (size_t i = 0; i < QUESTION_KEYS; i++)
        if (strcmp(key, shown[i]) == 0)
            return &q->shown[i];
    return NULL;
}

/* "key: value"; a text goes on in further lines of its key. */
static status read_key(const struct reader *reader, char *line, struct error *error)
{
    struct question *q = reader->question;
    char *value = strchr(line, ':'), *second;
    if (value == NULL)
        return damaged(reader, "\"-- key: value\" or SQL, below which comments may stand", line, error);
    *value++ = 0;
    value += strspn(value, " ");
    if (strcmp(line, "column") == 0)
        return read_columns(reader, value, error);
    if (strcmp(line, "wide") == 0) {
        if ((second = strchr(value, ' ')) == NULL)
            return damaged(reader, "two columns", value, error);
        q->wide_title = xstrndup(value, (size_t)(second - value));
        q->wide_value = xstrdup(second + 1);
        return OK;
    }
    char **text = text_of(q, line);
    OWNED char *before = text != NULL ? *text : NULL;
    if (text == NULL)
        return damaged(reader, "title, column, block, wide, mark, empty or a key of a page", line, error);
    *text = before != NULL ? path_format("%s %s", before, value) : xstrdup(value);
    return OK;
}

/* The part of this name, in place of the line that names it; a part may have such lines. */
static status include(struct reader *reader, const char *name, struct error *error)
{
    size_t size = strcspn(name, " ");
    const struct embedded_file *part = part_files;
    while (part->name != NULL && (strncmp(part->name, name, size) != 0 || strcmp(part->name + size, SUFFIX) != 0))
        part++;
    if (part->name == NULL)
        return error_set(error, ERROR_ARGUMENT, "%s: there is no part \"%.*s\" to include", reader->where, (int)size,
                         name);
    SCOPED(text_free) struct text text = {0};
    metrics_expand(&text, (const char *)part->data, NULL);
    for (char *line = text.data, *end; *line != 0; line = end + 1) {
        end = line + strcspn(line, "\n");
        *end = 0;
        if (strncmp(line, MARK, strlen(MARK)) == 0)
            TRY(include(reader, line + strlen(MARK), error));
        else
            text_add(&reader->sql, "%s\n", line);
    }
    return OK;
}

/* SQL goes to the statement that a line announced last, without the last line's end. */
static void end_statement(struct reader *reader, char **next)
{
    free(*reader->statement);
    size_t size = reader->sql.size;
    size -= size > 0 && reader->sql.data[size - 1] == '\n';
    *reader->statement = xstrndup(size > 0 ? reader->sql.data : "", size);
    text_clear(&reader->sql);
    reader->statement = next;
}

static status read_line(struct reader *reader, char *line, struct error *error)
{
    struct question *q = reader->question;
    bool includes = strncmp(line, MARK, strlen(MARK)) == 0;
    if (!reader->past_head && !includes && strncmp(line, "-- ", 3) == 0)
        return read_key(reader, line + 3, error);
    reader->past_head = true;
    if (includes)
        return include(reader, line + strlen(MARK), error);
    char **next = strcmp(line, "-- instead:") == 0  ? &q->instead
                  : strcmp(line, "-- refuse:") == 0 ? &q->refuse
                  : strcmp(line, "-- note:") == 0   ? &q->note
                                                    : NULL;
    if (next != NULL)
        end_statement(reader, next);
    else
        text_add(&reader->sql, "%s\n", line);
    return OK;
}

status question_parse(struct question *question, const char *name, const char *where, const char *text,
                      struct error *error)
{
    *question = (struct question){.name = xstrdup(name)};
    struct reader reader = {.question = question, .where = where, .line = 1, .statement = &question->answer};
    SCOPED(text_free) struct text whole = {0};
    status result = OK;
    metrics_expand(&whole, text, NULL);
    text_add(&whole, "%s", "");
    for (char *line = whole.data, *next; *line != 0 && result == OK; line = next, reader.line++) {
        next = line + strcspn(line, "\n");
        char *end = next > line && next[-1] == '\r' ? next - 1 : next;
        next += *next != 0;
        *end = 0;
        result = read_line(&reader, line, error);
    }
    end_statement(&reader, NULL);
    text_free(&reader.sql);
    if (question->title == NULL)
        question->title = xstrdup("");
    const char *place = question->shown[ON_PAGE];
    if (place != NULL && question->mark == NULL)
        question->mark = xstrdup("framed");
    if (result == OK && place != NULL && strspn(place, "0123456789") == 0)
        result = error_set(error, ERROR_ARGUMENT, "%s: expected \"-- section: NUMBER\", found \"%.60s\"", where, place);
    if (result != OK)
        question_free(question);
    return result;
}

void question_free(struct question *q)
{
    for (size_t i = 0; i < q->columns; i++)
        free(q->column[i].name);
    char *const texts[] = {q->name,  q->title,  q->block,   q->mark,   q->wide_title, q->wide_value,
                           q->empty, q->answer, q->instead, q->refuse, q->note};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    for (size_t key = 0; key < QUESTION_KEYS; key++)
        free(q->shown[key]);
    free(q->column);
    *q = (struct question){0};
}

/* --- Many files --- */

/* "matrix" of "folder/matrix.sql". */
static status read_text(struct question *question, const char *path, const char *text, struct error *error)
{
    const char *slash = strrchr(path, '/');
    OWNED char *name = xstrdup(slash != NULL ? slash + 1 : path);
    if (question_is_file(name))
        name[strlen(name) - strlen(SUFFIX)] = 0;
    return question_parse(question, name, path, text, error);
}

status question_read(struct question *question, const char *path, struct error *error)
{
    SCOPED(bytes_free) struct bytes bytes = {0};
    *question = (struct question){0};
    TRY(file_read(path, FILE_LIMIT, &bytes, error));
    return strlen((const char *)bytes.data) == bytes.size
               ? read_text(question, path, (const char *)bytes.data, error)
               : error_set(error, ERROR_FORMAT, "%s: expected SQL, found bytes that are no text", path);
}

static void add(struct questions *questions, const struct question *question)
{
    size_t at = 0;
    while (at < questions->count && strcmp(questions->question[at].name, question->name) != 0)
        at++;
    if (at < questions->count) {
        question_free(&questions->question[at]);
    } else {
        GROW(questions->question, questions->count);
        questions->count++;
    }
    questions->question[at] = *question;
}

/* A folder has both kinds; those of a page have a place there. */
static status add_folder(struct questions *questions, const char *folder, bool page, struct error *error)
{
    SCOPED(directory_free) struct directory directory = {0};
    TRY(directory_list(&directory, folder, error));
    status result = OK;
    for (size_t i = 0; i < directory.count && result == OK; i++) {
        struct question question = {0};
        if (!question_is_file(directory.names[i]))
            continue;
        OWNED char *path = path_format("%s/%s", folder, directory.names[i]);
        result = question_read(&question, path, error);
        if (result == OK && page == (question.shown[ON_PAGE] != NULL))
            add(questions, &question);
        else
            question_free(&question);
    }
    return result;
}

static status open_files(struct questions *questions, const struct embedded_file *file, const char *folder, bool page,
                         struct error *error)
{
    *questions = (struct questions){0};
    for (; file->name != NULL; file++) {
        struct question question;
        TRY(read_text(&question, file->name, (const char *)file->data, error));
        add(questions, &question);
    }
    return folder != NULL ? add_folder(questions, folder, page, error) : OK;
}

status questions_open(struct questions *questions, const char *folder, struct error *error)
{
    return open_files(questions, question_files, folder, false, error);
}

/* By the numbers of their sections. */
static int compare_places(const void *a, const void *b)
{
    const struct question *x = a, *y = b;
    double one = strtod(x->shown[ON_PAGE], NULL), other = strtod(y->shown[ON_PAGE], NULL);
    return one != other ? (one < other ? -1 : 1) : strcmp(x->name, y->name);
}

status questions_open_page(struct questions *questions, const char *folder, struct error *error)
{
    TRY(open_files(questions, page_questions, folder, true, error));
    qsort(questions->question, questions->count, sizeof *questions->question, compare_places);
    return OK;
}

void questions_close(struct questions *questions)
{
    for (size_t i = 0; i < questions->count; i++)
        question_free(&questions->question[i]);
    free(questions->question);
    *questions = (struct questions){0};
}

const struct question *questions_find(const struct questions *questions, const char *name)
{
    for (size_t i = 0; i < questions->count; i++)
        if (strcmp(questions->question[i].name, name) == 0)
            return &questions->question[i];
    return NULL;
}

bool question_uses(const struct questions *questions, const struct question *question, const char *name)
{
    for (size_t i = 0; question->instead != NULL && i < questions->count; i++) {
        char quoted[80];
        snprintf(quoted, sizeof quoted, "'%.70s'", questions->question[i].name);
        if (strstr(question->instead, quoted) != NULL && strstr(questions->question[i].answer, name) != NULL)
            return true;
    }
    return strstr(question->answer, name) != NULL;
}
