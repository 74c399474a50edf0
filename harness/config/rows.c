/* Lists the rows of a suite and chooses one. */
#include <stdlib.h>
#include <string.h>

#include "harness/config/internal.h"

static const struct suite_section *find_chooser(const struct suite_section *sections)
{
    while (sections->name != NULL && sections->row == NULL)
        sections++;
    return sections->name != NULL ? sections : NULL;
}

/* Refuses dots, commas and spaces in a row's name, because the command line lists rows: row=LwF,ZSCL. */
static status check_row(const struct suite_source *source, const struct assignment *row, struct error *error)
{
    char where[512];
    struct assignment heading = {.section = row->section, .line = row->line, .column = row->column};
    suite_source_where(source, &heading, where, sizeof where);
    if (strpbrk(row->entry, "., ") != NULL)
        return error_set(error, ERROR_ARGUMENT, "%s: row \"%s\": expected a name without dots, commas and spaces",
                         where, row->entry);
    return suite_check_name(where, "row", row->entry, error);
}

/* The names of the rows, in the order of their headings. */
static status read_rows(struct strings *rows, const struct suite_source *source, struct error *error)
{
    for (size_t i = 0; i < source->count; i++) {
        const struct assignment *assignment = &source->assignments[i];
        if (assignment->section != &suite_rows_section || assignment->entry == NULL || assignment->key != NULL)
            continue;
        TRY(check_row(source, assignment, error));
        strings_format(rows, "%s", assignment->entry);
    }
    return OK;
}

static status none_named(const struct suite_source *source, const struct suite_section *chooser,
                         const struct strings *rows, struct error *error)
{
    struct text names = {0};
    for (size_t i = 0; i < rows->count; i++)
        text_add(&names, "%s%s", i > 0 ? ", " : "", rows->items[i]);
    error_set(error, ERROR_ARGUMENT,
              "%s: a suite with %zu rows; expected one of them, as in %s.%s=%s, or mtil sweep %s, which runs them all: "
              "%s",
              source->file, rows->count, chooser->name, chooser->row, rows->items[0], source->file, names.data);
    text_free(&names);
    return ERROR_ARGUMENT;
}

static status check_word(const char *where, const char *name, const struct strings *rows, struct error *error)
{
    for (size_t i = 0; i < rows->count; i++)
        if (name == NULL || strcmp(rows->items[i], name) == 0)
            return OK;
    return error_unknown_word(error, where, "row", name, (const char *const *)rows->items, rows->count);
}

/* Overrides may set rows of a suite without rows. */
static status check_no_row(const struct suite_source *source, struct error *error)
{
    for (size_t i = 0; i < source->count; i++) {
        const struct assignment *row = &source->assignments[i];
        if (row->section == &suite_rows_section && row->entry == NULL)
            return error_set(error, ERROR_ARGUMENT, "%s:%zu:%zu: rows: expected rows below it, found none",
                             source->file, row->line, row->column);
        if (row->section == &suite_rows_section)
            return error_set(error, ERROR_ARGUMENT, "command line: rows: the suite %s has no rows, found \"%s\"",
                             source->file, row->entry);
    }
    return OK;
}

static status choose(const struct suite_source *source, const struct strings *rows, const char **chosen,
                     struct error *error)
{
    const struct suite_section *chooser = find_chooser(source->sections);
    const struct assignment *named = chooser != NULL ? suite_source_last(source, chooser, NULL, chooser->row) : NULL;
    char where[512];
    if (named != NULL)
        suite_source_where(source, named, where, sizeof where);
    if (rows->count == 0) /* a suite stored with a run names its row and has no others */
        return named == NULL || named->line > 0
                   ? check_no_row(source, error)
                   : error_set(error, ERROR_ARGUMENT, "%s.%s: the suite %s has no rows, found \"%s\"", where,
                               chooser->row, source->file, named->value);
    if (chooser == NULL)
        return error_set(error, ERROR_ARGUMENT, "%s: rows: expected a suite without rows", source->file);
    if (named == NULL)
        return none_named(source, chooser, rows, error);
    status result = check_word(where, named->value, rows, error);
    for (size_t i = 0; i < source->count; i++) /* of overrides */
        if (source->assignments[i].section == &suite_rows_section)
            NEXT(result, check_word("command line: rows", source->assignments[i].entry, rows, error));
    *chosen = named->value;
    return result;
}

status suite_rows_choose(const struct suite_source *source, const char **row, struct error *error)
{
    struct strings rows = {0};
    *row = NULL;
    status result = read_rows(&rows, source, error);
    NEXT(result, choose(source, &rows, row, error));
    strings_free(&rows);
    return result;
}

status suite_load_rows(struct suite_rows *rows, const char *name_or_path, const struct suite_section *sections,
                       struct error *error)
{
    const struct suite_section *chooser = find_chooser(sections);
    struct suite_file file;
    *rows = (struct suite_rows){0};
    TRY(suite_file_open(&file, name_or_path, error));
    struct suite_source source = {.file = file.name, .sections = sections};
    status result = suite_source_read(&source, file.text, file.size, error);
    NEXT(result, read_rows(&rows->names, &source, error));
    if (result == OK && chooser != NULL)
        rows->key = path_format("%s.%s", chooser->name, chooser->row);
    suite_source_free(&source);
    suite_file_close(&file);
    if (result != OK)
        suite_rows_free(rows);
    return result;
}

void suite_rows_free(struct suite_rows *rows)
{
    strings_free(&rows->names);
    free(rows->key);
    rows->key = NULL;
}
