#include "results/query/question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/embedded.h"
#include "core/file.h"
#include "core/text.h"

EMBEDDED_FILES(question_files);
EMBEDDED_FILES(page_questions);
EMBEDDED_FILES(part_files);

#define SUFFIX ".sql"
#define MARK "-- include: "

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

/* Where a head is being read. */
struct head {
    struct question *question;
    const char *where;
    size_t line;
};

static status damaged(const struct head *head, const char *expected, const char *found, struct error *error)
{
    return error_set(error, ERROR_ARGUMENT, "%s:%zu: expected %s, found \"%.60s\"", head->where, head->line, expected,
                     found);
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

static status read_column(const struct head *head, char *value, struct error *error)
{
    struct question *q = head->question;
    const char *name = next_word(&value);
    if (name == NULL)
        return damaged(head, "the name of a column", "", error);
    struct question_column *larger = realloc(q->column, (q->columns + 1) * sizeof *larger);
    char *copy = strdup(name);
    if (larger != NULL)
        q->column = larger;
    if (larger == NULL || copy == NULL) {
        free(copy);
        return error_set(error, ERROR_MEMORY, "%s: out of memory", head->where);
    }
    struct question_column *column = &q->column[q->columns++];
    *column = (struct question_column){.name = copy, .about = *question_usual_column(name)};
    column->about.title = NULL;
    for (char *word; (word = next_word(&value)) != NULL;)
        if (!take_word(column, word))
            return damaged(head, "once, hidden, optional, left, right, highest, lowest or a number of decimals", word,
                           error);
    return OK;
}

static status set(const struct head *head, char **to, const char *value, struct error *error)
{
    free(*to);
    *to = value != NULL ? strdup(value) : NULL;
    if (value == NULL)
        return damaged(head, "a word", "", error);
    return *to != NULL ? OK : error_set(error, ERROR_MEMORY, "%s: out of memory", head->where);
}

static const char *const shown_keys[QUESTION_KEYS] = {
    [ON_PAGE] = "section",    [ON_DRAW] = "draw",       [ON_NAME] = "name", [ON_CHOICE] = "choice",
    [ON_CAPTION] = "caption", [ON_DETAILS] = "details", [ON_X] = "x",       [ON_Y] = "y",
    [ON_VALUE] = "value",     [ON_RANGE] = "range",     [ON_BEST] = "best", [ON_FRAMED] = "framed"};

/* A caption goes on in further lines of its name. */
static status set_shown(const struct head *head, enum question_key key, const char *value, struct error *error)
{
    char **to = &head->question->shown[key];
    char *joined = *to != NULL ? path_format("%s %s", *to, value) : strdup(value);
    free(*to);
    *to = joined;
    return joined != NULL ? OK : error_set(error, ERROR_MEMORY, "%s: out of memory", head->where);
}

static status read_line(const struct head *head, char *line, struct error *error)
{
    struct question *q = head->question;
    char *value = strchr(line, ':');
    if (value == NULL)
        return damaged(head, "\"-- key: value\" or SQL", line, error);
    *value++ = 0;
    value += strspn(value, " ");
    if (strcmp(line, "title") == 0)
        return set(head, &q->title, value, error);
    if (strcmp(line, "column") == 0)
        return read_column(head, value, error);
    if (strcmp(line, "expect") == 0) {
        q->expects_none = strcmp(value, "no rows") == 0;
        return q->expects_none ? OK : damaged(head, "no rows", value, error);
    }
    if (strcmp(line, "block") == 0)
        return set(head, &q->block, next_word(&value), error);
    for (size_t key = 0; key < QUESTION_KEYS; key++)
        if (strcmp(line, shown_keys[key]) == 0)
            return set_shown(head, (enum question_key)key, value, error);
    if (strcmp(line, "wide") != 0)
        return damaged(head, "title, column, block, wide or a key of a page", line, error);
    TRY(set(head, &q->wide_title, next_word(&value), error));
    return set(head, &q->wide_value, next_word(&value), error);
}

/* Reads the lines "-- …" at the beginning of text, which moves on. */
static status read_head(struct head *head, const char **text, struct error *error)
{
    for (head->line = 1; strncmp(*text, "-- ", 3) == 0 && strncmp(*text, MARK, strlen(MARK)) != 0; head->line++) {
        size_t length = strcspn(*text, "\n");
        char *line = strndup(*text + 3, length - 3);
        status result = line != NULL ? read_line(head, line, error)
                                     : error_set(error, ERROR_MEMORY, "%s: out of memory", head->where);
        free(line);
        TRY(result);
        *text += length + ((*text)[length] == '\n');
    }
    return OK;
}

/* Cuts the text at the lines that announce statements. */
static status read_statements(struct question *q, const char *where, const char *text, struct error *error)
{
    static const char *const marks[] = {"-- instead:\n", "-- refuse:\n", "-- note:\n"};
    char **const of[] = {&q->instead, &q->refuse, &q->note};
    char **to = &q->answer;
    while (to != NULL) {
        const char *end = text + strlen(text), *behind = end;
        char **next = NULL;
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
            for (const char *at = strstr(text, marks[i]); at != NULL && at < end; at = strstr(at + 1, marks[i]))
                if (at == text || at[-1] == '\n') {
                    end = at;
                    behind = at + strlen(marks[i]);
                    next = of[i];
                }
        free(*to);
        *to = strndup(text, (size_t)(end - text));
        if (*to == NULL)
            return error_set(error, ERROR_MEMORY, "%s: out of memory", where);
        text = behind;
        to = next;
    }
    return OK;
}

/* Appends the text, with the parts that it includes in place of the lines that name them. */
static status include(struct text *whole, const char *where, const char *text, struct error *error)
{
    for (size_t length; *text != 0; text += length) {
        length = strcspn(text, "\n") + 1;
        length -= text[length - 1] == 0;
        if (strncmp(text, MARK, strlen(MARK)) != 0) {
            text_add_bytes(whole, text, length);
            continue;
        }
        const char *name = text + strlen(MARK);
        size_t size = strcspn(name, " \n");
        const struct embedded_file *part = part_files;
        while (part->name != NULL && (strncmp(part->name, name, size) != 0 || strcmp(part->name + size, SUFFIX) != 0))
            part++;
        if (part->name == NULL)
            return error_set(error, ERROR_ARGUMENT, "%s: there is no part \"%.*s\" to include", where, (int)size, name);
        text_add_bytes(whole, (const char *)part->data, part->size);
    }
    return whole->failed ? error_set(error, ERROR_MEMORY, "%s: out of memory", where) : OK;
}

status question_parse(struct question *question, const char *name, const char *where, const char *text,
                      struct error *error)
{
    struct text whole = {0};
    *question = (struct question){.name = strdup(name), .title = strdup("")};
    struct head head = {.question = question, .where = where};
    status result = question->name != NULL && question->title != NULL
                        ? OK
                        : error_set(error, ERROR_MEMORY, "%s: out of memory", where);
    NEXT(result, read_head(&head, &text, error));
    const char *place = question->shown[ON_PAGE];
    if (result == OK && place != NULL && strspn(place, "0123456789") == 0)
        result = error_set(error, ERROR_ARGUMENT, "%s: expected \"-- section: NUMBER\", found \"%.60s\"", where, place);
    NEXT(result, include(&whole, where, text, error));
    NEXT(result, read_statements(question, where, whole.data != NULL ? whole.data : "", error));
    text_free(&whole);
    if (result != OK)
        question_free(question);
    return result;
}

void question_free(struct question *q)
{
    for (size_t i = 0; i < q->columns; i++)
        free(q->column[i].name);
    char *const texts[] = {q->name,   q->title,   q->block,  q->wide_title, q->wide_value,
                           q->answer, q->instead, q->refuse, q->note};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    for (size_t key = 0; key < QUESTION_KEYS; key++)
        free(q->shown[key]);
    free(q->column);
    *q = (struct question){0};
}

/* --- Many files --- */

/* "matrix" of "folder/matrix.sql"; the caller frees. */
static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    size_t length = strlen(name), suffix = strlen(SUFFIX);
    bool has = length > suffix && strcmp(name + length - suffix, SUFFIX) == 0;
    return strndup(name, has ? length - suffix : length);
}

static status read_text(struct question *question, const char *path, const char *text, struct error *error)
{
    char *name = name_of(path);
    status result = name != NULL ? question_parse(question, name, path, text, error)
                                 : error_set(error, ERROR_MEMORY, "%s: out of memory", path);
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

static status add(struct questions *questions, struct question *question, struct error *error)
{
    for (size_t i = 0; i < questions->count; i++)
        if (strcmp(questions->question[i].name, question->name) == 0) {
            question_free(&questions->question[i]);
            questions->question[i] = *question;
            return OK;
        }
    struct question *larger = realloc(questions->question, (questions->count + 1) * sizeof *larger);
    if (larger == NULL) {
        question_free(question);
        return error_set(error, ERROR_MEMORY, "results: out of memory for questions");
    }
    questions->question = larger;
    larger[questions->count++] = *question;
    return OK;
}

static status add_folder(struct questions *questions, const char *folder, bool page, struct error *error)
{
    struct directory directory;
    TRY(directory_list(&directory, folder, error));
    status result = OK;
    for (size_t i = 0; i < directory.count && result == OK; i++) {
        struct question question;
        size_t length = strlen(directory.names[i]);
        if (length <= strlen(SUFFIX) || strcmp(directory.names[i] + length - strlen(SUFFIX), SUFFIX) != 0)
            continue;
        char *path = path_format("%s/%s", folder, directory.names[i]);
        result = path != NULL ? question_read(&question, path, error)
                              : error_set(error, ERROR_MEMORY, "%s: out of memory", folder);
        if (result == OK && page != (question.shown[ON_PAGE] != NULL)) /* a folder has both kinds */
            question_free(&question);
        else if (result == OK)
            result = add(questions, &question, error);
        free(path);
    }
    directory_free(&directory);
    return result;
}

static status open_files(struct questions *questions, const struct embedded_file *file, struct error *error)
{
    *questions = (struct questions){0};
    for (; file->name != NULL; file++) {
        struct question question;
        TRY(read_text(&question, file->name, (const char *)file->data, error));
        TRY(add(questions, &question, error));
    }
    return OK;
}

status questions_open(struct questions *questions, const char *folder, struct error *error)
{
    TRY(open_files(questions, question_files, error));
    return folder != NULL ? add_folder(questions, folder, false, error) : OK;
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
    TRY(open_files(questions, page_questions, error));
    TRY(folder != NULL ? add_folder(questions, folder, true, error) : OK);
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

static bool mentions(const struct question *question, const char *name)
{
    return strstr(question->answer, name) != NULL;
}

bool question_uses(const struct questions *questions, const struct question *question, const char *name)
{
    for (size_t i = 0; question->instead != NULL && i < questions->count; i++) {
        char quoted[80];
        snprintf(quoted, sizeof quoted, "'%.70s'", questions->question[i].name);
        if (strstr(question->instead, quoted) != NULL && mentions(&questions->question[i], name))
            return true;
    }
    return mentions(question, name);
}
