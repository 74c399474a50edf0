/* What the head of a question says, and the values of its answer. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "results/query/internal.h"
#include "results/report/part.h"

static void add_value(struct text *text, const struct table_cell *cell)
{
    if (cell->kind == CELL_TEXT)
        text_add(text, "%s", cell->text);
    else if (cell->kind == CELL_INTEGER)
        text_add(text, "%" PRId64, cell->integer);
    else if (cell->kind == CELL_REAL)
        text_add(text, "%.15g", cell->real);
}

/* The text as one of the report's, which is freed with it. */
static const char *keep(const struct part *part, struct text *text)
{
    const char *copy = report_copy(part->call->report, text->size > 0 ? text->data : "");
    text_free(text);
    return copy;
}

const char *part_fill(const struct part *part, const char *line)
{
    struct text filled = {0};
    for (size_t length; *line != 0; line += length) {
        size_t column = SIZE_MAX;
        length = strcspn(line, "{");
        if (length == 0) {
            length = strcspn(line, "}");
            length += line[length] == '}';
            column = query_column(part->rows, report_format(part->call->report, "%.*s", (int)length - 2, line + 1));
        }
        if (column != SIZE_MAX)
            add_value(&filled, table_cell_at(part->rows, part->first, column));
        else
            text_add_bytes(&filled, line, length);
    }
    return keep(part, &filled);
}

const char *part_says(const struct part *part, enum question_key key)
{
    const char *line = part->question->shown[key];
    return line != NULL ? part_fill(part, line) : NULL;
}

const char *part_words(const struct part *part)
{
    const char *line = part_says(part, ON_DRAW);
    struct text words = {0};
    for (size_t i = 0; line != NULL && line[i] != 0; i++)
        text_add_bytes(&words, line[i] == ' ' ? "|" : &line[i], 1);
    return keep(part, &words);
}

bool part_has_word(const struct part *part, const char *word)
{
    return text_has_word(part_words(part), word);
}

struct figure_range part_range(const struct part *part)
{
    double ends[] = {(double)NAN, (double)NAN};
    const char *line = part_says(part, ON_RANGE);
    for (size_t i = 0; line != NULL && i < 2; i++) {
        char *end;
        double number = strtod(line, &end);
        ends[i] = end > line ? number : (double)NAN;
        line = end;
    }
    return (struct figure_range){ends[0], ends[1]};
}

static const struct table_cell *cell_of(const struct part *part, size_t row, const char *column)
{
    static const struct table_cell empty = {.kind = CELL_EMPTY};
    size_t at = query_column(part->rows, column);
    return at != SIZE_MAX ? table_cell_at(part->rows, row, at) : &empty;
}

const char *part_text(const struct part *part, size_t row, const char *column)
{
    const struct table_cell *cell = cell_of(part, row, column);
    struct text text = {0};
    if (cell->kind == CELL_TEXT)
        return cell->text;
    add_value(&text, cell);
    return keep(part, &text);
}

double part_real(const struct part *part, size_t row, const char *column)
{
    const struct table_cell *cell = cell_of(part, row, column);
    return cell->kind == CELL_REAL ? cell->real : cell->kind == CELL_INTEGER ? (double)cell->integer : (double)NAN;
}

bool part_is_column(const struct part *part, const char *name)
{
    const struct question *question = part->question;
    char *braced = path_format("{%s}", name);
    bool is = !text_has_word("choice|framed|extra", name) && strstr(question->title, braced) == NULL;
    for (size_t key = 0; key < QUESTION_KEYS; key++)
        is &= question->shown[key] == NULL || strstr(question->shown[key], braced) == NULL;
    free(braced);
    return is;
}

const char *section_name(const struct section_call *call, const char *what)
{
    return report_format(call->report, "%s%s", call->prefix, what);
}

const char *part_name(const struct part *part)
{
    const char *name = part_says(part, ON_NAME);
    return section_name(part->call, name != NULL ? name : part->question->name);
}
