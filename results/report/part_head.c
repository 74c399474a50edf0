/* What the head of a question says, and the values of its answer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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

const char *part_fill(const struct part *part, const char *text)
{
    struct text filled = {0};
    while (*text != 0) {
        size_t plain = strcspn(text, "{"), length = strcspn(text + plain, "}");
        text_add_bytes(&filled, text, plain);
        text += plain;
        if (*text == 0)
            break;
        const char *name = report_format(part->call->report, "%.*s", length > 0 ? (int)length - 1 : 0, text + 1);
        size_t column = query_column(part->rows, name);
        if (column != SIZE_MAX)
            add_value(&filled, table_cell_at(part->rows, part->first, column));
        else
            text_add(&filled, "{%s}", name);
        text += length + (text[length] == '}');
    }
    const char *copy = report_copy(part->call->report, filled.data != NULL ? filled.data : "");
    text_free(&filled);
    return copy;
}

const char *part_says(const struct part *part, enum question_key key)
{
    const char *line = part->question->shown[key];
    return line != NULL ? part_fill(part, line) : NULL;
}

static bool is_word(const char *at, const char *line, const char *word)
{
    char end = at[strlen(word)];
    return (at == line || at[-1] == ' ') && (end == 0 || end == ' ');
}

bool part_has_word(const struct part *part, const char *word)
{
    const char *line = part_says(part, ON_DRAW);
    for (const char *at = line; at != NULL && (at = strstr(at, word)) != NULL; at++)
        if (is_word(at, line, word))
            return true;
    return false;
}

struct figure_range part_range(const struct part *part)
{
    struct figure_range range = {(double)NAN, (double)NAN};
    char word[2][64] = {"", ""};
    const char *line = part_says(part, ON_RANGE);
    for (size_t i = 0; line != NULL && i < 2; i++) {
        size_t length = strcspn(line, " ");
        snprintf(word[i], sizeof word[i], "%.*s", (int)length, line);
        line += length + (line[length] == ' ');
    }
    if (!parse_real(word[0], &range.low))
        range.low = (double)NAN;
    if (!parse_real(word[1], &range.high))
        range.high = (double)NAN;
    return range;
}

const char *part_text(const struct part *part, size_t row, const char *column)
{
    size_t at = query_column(part->rows, column);
    const struct table_cell *cell = at != SIZE_MAX ? table_cell_at(part->rows, row, at) : NULL;
    struct text text = {0};
    if (cell == NULL || cell->kind == CELL_EMPTY)
        return "";
    if (cell->kind == CELL_TEXT)
        return cell->text;
    add_value(&text, cell);
    const char *copy = report_copy(part->call->report, text.failed ? "" : text.data);
    text_free(&text);
    return copy;
}

double part_real(const struct part *part, size_t row, const char *column)
{
    size_t at = query_column(part->rows, column);
    const struct table_cell *cell = at != SIZE_MAX ? table_cell_at(part->rows, row, at) : NULL;
    if (cell == NULL || (cell->kind != CELL_INTEGER && cell->kind != CELL_REAL))
        return (double)NAN;
    return cell->kind == CELL_REAL ? cell->real : (double)cell->integer;
}

bool part_is_column(const struct part *part, const char *name)
{
    const struct question *question = part->question;
    static const char *const words[] = {"choice", "framed", "extra"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i]) == 0)
            return false;
    for (size_t key = 0; key <= QUESTION_KEYS; key++) {
        const char *line = key < QUESTION_KEYS ? question->shown[key] : question->title;
        for (const char *at = line; at != NULL && (at = strchr(at, '{')) != NULL; at++)
            if (strncmp(at + 1, name, strlen(name)) == 0 && at[1 + strlen(name)] == '}')
                return false;
    }
    return true;
}

const char *part_name(const struct part *part)
{
    const char *name = part_says(part, ON_NAME);
    return section_name(part->call, name != NULL ? name : part->question->name);
}
