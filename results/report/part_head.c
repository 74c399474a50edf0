/* What the head of a question says, and the values of its answer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
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

bool part_has_word(const struct part *part, const char *word)
{
    const char *line = part_says(part, ON_DRAW);
    for (size_t length; line != NULL && *line != 0; line += length + strspn(line + length, " ")) {
        length = strcspn(line, " ");
        if (length == strlen(word) && strncmp(line, word, length) == 0)
            return true;
    }
    return false;
}

struct figure_range part_range(const struct part *part)
{
    struct figure_range range = {(double)NAN, (double)NAN};
    const char *line = part_says(part, ON_RANGE);
    char low[64] = "", high[64] = "";
    if (line != NULL) {
        snprintf(low, sizeof low, "%.*s", (int)strcspn(line, " "), line);
        line += strcspn(line, " ");
        snprintf(high, sizeof high, "%s", line + (*line != 0));
    }
    parse_real(low, &range.low); /* which leaves what is no number */
    parse_real(high, &range.high);
    return range;
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

const char *part_name(const struct part *part)
{
    const char *name = part_says(part, ON_NAME);
    return section_name(part->call, name != NULL ? name : part->question->name);
}
