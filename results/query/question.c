#include "results/query/question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/array.h"
#include "core/embedded.h"
#include "core/file.h"
#include "core/text.h"

EMBEDDED_FILES(question_files);
EMBEDDED_FILES(page_questions);
EMBEDDED_FILES(part_files);

#define SUFFIX ".sql"
#define MARK "-- include: "

static bool is_sql(const char *path)
{
    size_t length = strlen(path);
    return length > strlen(SUFFIX) && strcmp(path + length - strlen(SUFFIX), SUFFIX) == 0;
}

static const struct table_column usual[] = {
    {.title = "transfer", .decimals = 1, .best = BEST_HIGHEST},
    {.title = "average", .decimals = 1, .best = BEST_HIGHEST},
    {.title = "last", .decimals = 1, .best = BEST_HIGHEST},
    {.title = "forgetting", .decimals = 1, .best = BEST_LOWEST},
    {.title = "backward_transfer", .decimals = 1, .best = BEST_HIGHEST},
    {.title = "forward_transfer", .decimals = 1, .best = BEST_HIGHEST},
    {.title = "gain", .decimals = 1, .best = BEST_HIGHEST},
    {.title = "zero_shot", .decimals = 1},
    {.title = "right_router", .decimals = 1},
    {.title = "unseen_zero_shot", .decimals = 1},
    {.title = "share", .decimals = 1},
    {.title = "seconds", .decimals = 1},
    {.title = "seconds_per_iteration", .decimals = 3},
    {.title = "images_per_second", .decimals = 1},
};

const struct table_column *question_usual_column(const char *title)
{
    static const struct table_column other = {.decimals = DECIMALS_ALL};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(usual[i].title, title) == 0)
            return &usual[i];
    return &other;
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

/* The next word of a line, or what is within quotes; the line moves on; NULL at its end. */
static char *next_word(char **line)
{
    char *word = *line + strspn(*line, " \t");
    const char *end = *word == '"' ? "\"" : " \t";
    word += *word == '"';
    if (*word == 0)
        return NULL;
    *line = word + strcspn(word, end);
    if (**line != 0)
        *(*line)++ = 0;
    return word;
}

static bool take_word(struct question_column *column, const char *word)
{
    int64_t decimals;
    if (parse_integer(word, &decimals) && decimals >= 0 && decimals <= 17)
        column->about.decimals = (int)decimals;
    else if (strcmp(word, "once") == 0)
        column->about.once = true;
    else if (strcmp(word, "hidden") == 0)
        column->hidden = true;
    else if (strcmp(word, "of-dataset") == 0)
        column->of_dataset = true;
    else if (strcmp(word, "optional") == 0)
        column->optional = true;
    else if (strcmp(word, "left") == 0)
        column->about.align = ALIGN_LEFT;
    else if (strcmp(word, "right") == 0)
        column->about.align = ALIGN_RIGHT;
    else if (strcmp(word, "highest") == 0)
        column->about.best = BEST_HIGHEST;
    else if (strcmp(word, "lowest") == 0)
        column->about.best = BEST_LOWEST;
    else
        return false;
    return true;
}

/* Names, separated by commas, each in quotes if it has a blank or a comma; then words. */
static status read_columns(const struct reader *reader, char *value, struct error *error)
{
    struct question *q = reader->question;
    size_t first = q->columns;
    for (bool more = true; more;) {
        char *name = value + strspn(value, " \t");
        bool quoted = *name == '"';
        name += quoted;
        char *end = name + strcspn(name, quoted ? "\"" : " \t,");
        if (end == name)
            return damaged(reader, "the name of a column", "", error);
        value = end + (quoted && *end != 0);
        more = *value == ',';
        value += *value != 0;
        *end = 0;
        GROW(q->column, q->columns);
        q->column[q->columns] = (struct question_column){.name = xstrdup(name), .about = *question_usual_column(name)};
        q->column[q->columns++].about.title = NULL;
    }
    for (char *word; (word = next_word(&value)) != NULL;)
        for (size_t i = first; i < q->columns; i++)
            if (!take_word(&q->column[i], word))
                return damaged(
                    reader, "once, hidden, of-dataset, optional, left, right, highest, lowest or a number of decimals",
                    word, error);
    return OK;
}

static status set(const struct reader *reader, char **to, const char *value, struct error *error)
{
    if (value == NULL)
        return damaged(reader, "a word", "", error);
    free(*to);
    *to = xstrdup(value);
    return OK;
}

static const char *const shown_keys[QUESTION_KEYS] = {
    [ON_PAGE] = "section",    [ON_DRAW] = "draw",       [ON_NAME] = "name", [ON_CHOICE] = "choice",
    [ON_CAPTION] = "caption", [ON_DETAILS] = "details", [ON_X] = "x",       [ON_Y] = "y",
    [ON_VALUE] = "value",     [ON_RANGE] = "range",     [ON_BEST] = "best", [ON_FRAMED] = "framed"};

/* "key: value"; a caption goes on in further lines of its name. */
static status read_key(const struct reader *reader, char *line, struct error *error)
{
    struct question *q = reader->question;
    char *value = strchr(line, ':');
    if (value == NULL)
        return damaged(reader, "\"-- key: value\" or SQL", line, error);
    *value++ = 0;
    value += strspn(value, " ");
    if (strcmp(line, "title") == 0)
        return set(reader, &q->title, value, error);
    if (strcmp(line, "column") == 0)
        return read_columns(reader, value, error);
    if (strcmp(line, "expect") == 0) {
        q->expects_none = strcmp(value, "no rows") == 0;
        return q->expects_none ? OK : damaged(reader, "no rows", value, error);
    }
    if (strcmp(line, "mark") == 0)
        return set(reader, &q->mark, next_word(&value), error);
    if (strcmp(line, "block") == 0)
        return set(reader, &q->block, next_word(&value), error);
    if (strcmp(line, "wide") == 0) {
        TRY(set(reader, &q->wide_title, next_word(&value), error));
        return set(reader, &q->wide_value, next_word(&value), error);
    }
    for (size_t key = 0; key < QUESTION_KEYS; key++)
        if (strcmp(line, shown_keys[key]) == 0) {
            char *before = q->shown[key];
            q->shown[key] = before != NULL ? path_format("%s %s", before, value) : xstrdup(value);
            free(before);
            return OK;
        }
    return damaged(reader, "title, column, block, wide, mark or a key of a page", line, error);
}

/* The part of this name, in place of the line that names it. */
static status include(struct reader *reader, const char *name, struct error *error)
{
    size_t size = strcspn(name, " ");
    const struct embedded_file *part = part_files;
    while (part->name != NULL && (strncmp(part->name, name, size) != 0 || strcmp(part->name + size, SUFFIX) != 0))
        part++;
    if (part->name == NULL)
        return error_set(error, ERROR_ARGUMENT, "%s: there is no part \"%.*s\" to include", reader->where, (int)size,
                         name);
    text_add_bytes(&reader->sql, (const char *)part->data, part->size);
    return OK;
}

/* SQL goes to the statement that a line announced last. */
static void end_statement(struct reader *reader, char **next)
{
    free(*reader->statement);
    *reader->statement = xstrdup(reader->sql.data != NULL ? reader->sql.data : "");
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
    *question = (struct question){.name = xstrdup(name), .title = xstrdup("")};
    struct reader reader = {.question = question, .where = where, .line = 1, .statement = &question->answer};
    status result = OK;
    for (size_t length; *text != 0 && result == OK; text += length + (text[length] == '\n'), reader.line++) {
        length = strcspn(text, "\n");
        char *line = xstrndup(text, length);
        result = read_line(&reader, line, error);
        free(line);
    }
    end_statement(&reader, NULL);
    text_free(&reader.sql);
    const char *place = question->shown[ON_PAGE];
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
    char *const texts[] = {q->name,       q->title,  q->block,   q->mark,   q->wide_title,
                           q->wide_value, q->answer, q->instead, q->refuse, q->note};
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
    char *name = xstrdup(slash != NULL ? slash + 1 : path);
    if (is_sql(name))
        name[strlen(name) - strlen(SUFFIX)] = 0;
    status result = question_parse(question, name, path, text, error);
    free(name);
    return result;
}

status question_read(struct question *question, const char *path, struct error *error)
{
    struct bytes bytes;
    *question = (struct question){0};
    TRY(file_read(path, FILE_LIMIT, &bytes, error));
    status result = strlen((const char *)bytes.data) == bytes.size
                        ? read_text(question, path, (const char *)bytes.data, error)
                        : error_set(error, ERROR_FORMAT, "%s: expected SQL, found bytes that are no text", path);
    bytes_free(&bytes);
    return result;
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

/* A folder has both kinds, of which those of a page have a place there. */
static status add_folder(struct questions *questions, const char *folder, bool page, struct error *error)
{
    struct directory directory;
    TRY(directory_list(&directory, folder, error));
    status result = OK;
    for (size_t i = 0; i < directory.count && result == OK; i++) {
        struct question question = {0};
        if (!is_sql(directory.names[i]))
            continue;
        char *path = path_format("%s/%s", folder, directory.names[i]);
        result = question_read(&question, path, error);
        free(path);
        if (result == OK && page == (question.shown[ON_PAGE] != NULL))
            add(questions, &question);
        else
            question_free(&question);
    }
    directory_free(&directory);
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
