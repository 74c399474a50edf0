#include "harness/run/imported.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/evaluate/evaluator.h"
#include "harness/run/identity/inputs.h"
#include "harness/run/record/record.h"

enum { FILE_MOST = 1 << 30 };

/* --- Files --- */

static status wrong(const struct imported_line *line, const char *expected, struct error *error)
{
    return error_set(error, ERROR_FORMAT, "%s: line %zu: expected %s", line->file, line->number, expected);
}

/* line->record becomes the list's. */
static status add_line(struct imported *imported, const struct imported_line *line, struct error *error)
{
    bool predicts = json_object_get(line->record, "predicted") != NULL;
    GROW(imported->lines, imported->count);
    imported->lines[imported->count++] = *line;
    if (!predicts && !json_is_array(json_object_get(line->record, "acc_per_task")))
        return wrong(line, "an object with \"acc_per_task\" or \"predicted\"", error);
    if (imported->count > 1 && predicts != imported->predicts)
        return wrong(line, "accuracies or predictions in all lines, not both", error);
    imported->predicts = predicts;
    return OK;
}

static status read_json(struct imported *imported, const char *path, char *text, struct error *error)
{
    size_t number = 0;
    for (char *rest = text, *row; (row = strsep(&rest, "\n")) != NULL;) {
        struct imported_line line = {.file = path, .number = ++number};
        json_error_t fault;
        if (row[strspn(row, " \t\r")] == 0)
            continue;
        line.record = json_loads(row, JSON_REJECT_DUPLICATES, &fault);
        if (line.record == NULL)
            return error_set(error, ERROR_FORMAT, "%s: line %zu: %s", path, number, fault.text);
        TRY(add_line(imported, &line, error));
    }
    return OK;
}

/* A cell of CSV without quotes and blanks. */
static char *trimmed(char *cell)
{
    static const char around[] = " \t\r\"";
    cell += strspn(cell, around);
    for (size_t n = strlen(cell); n > 0 && strchr(around, cell[n - 1]) != NULL; n--)
        cell[n - 1] = 0;
    return cell;
}

/* A number, null where the cell is empty, else the text. */
static json_t *cell_value(const char *cell)
{
    double value;
    if (*cell == 0)
        return json_null();
    return parse_real(cell, &value) ? json_pack("{s:f, s:s}", "value", value, "text", cell) : json_string(cell);
}

static json_t *split_row(char *row)
{
    json_t *cells = json_array();
    for (char *cell; (cell = strsep(&row, ",;")) != NULL;)
        json_array_append_new(cells, cell_value(trimmed(cell)));
    return cells;
}

static status read_csv(struct imported *imported, const char *path, char *text, struct error *error)
{
    SCOPED(json_decref_at) json_t *header = NULL;
    size_t number = 0;
    for (char *rest = text, *row; (row = strsep(&rest, "\n")) != NULL;) {
        struct imported_line line = {.file = path, .number = ++number};
        if (row[strspn(row, " \t\r")] == 0)
            continue;
        json_t *cells = split_row(row);
        if (header == NULL) {
            header = cells;
            continue;
        }
        line.record = json_pack("{s:O, s:o}", "columns", header, "acc_per_task", cells);
        TRY(add_line(imported, &line, error));
    }
    return OK;
}

static status read_input(const char *path, struct bytes *bytes, struct error *error)
{
    SCOPED(text_free) struct text text = {0};
    char part[1 << 16];
    if (strcmp(path, "-") != 0)
        return file_read(path, FILE_MOST, bytes, error);
    text_add(&text, "%s", "");
    for (size_t got; (got = fread(part, 1, sizeof part, stdin)) > 0 && text.size < FILE_MOST;)
        text_add_bytes(&text, part, got);
    if (ferror(stdin))
        return error_errno(error, errno, "standard input: cannot be read");
    *bytes = (struct bytes){(uint8_t *)TAKE(text.data), text.size};
    return OK;
}

status imported_read(struct imported *imported, const char *path, struct error *error)
{
    SCOPED(bytes_free) struct bytes bytes = {0};
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    TRY(read_input(path, &bytes, error));
    GROW(imported->files, imported->file_count);
    struct imported_file *file = &imported->files[imported->file_count++];
    *file = (struct imported_file){strcmp(path, "-") == 0 ? xstrdup(name) : path_absolute(path), bytes.size, ""};
    struct digest sum = digest_begin();
    digest_add(&sum, bytes.data, bytes.size);
    digest_end(&sum, file->digest);
    const char *text = (const char *)bytes.data;
    size_t size = bytes.size, before = imported->count;
    text_skip_mark(&text, &size);
    OWNED char *copy = xstrndup(text, size);
    TRY((copy[strspn(copy, " \t\r\n")] == '{' ? read_json : read_csv)(imported, name, copy, error));
    return imported->count > before ? OK
                                    : error_set(error, ERROR_FORMAT, "%s: expected lines of results, found none", name);
}

void imported_free(struct imported *imported)
{
    for (size_t i = 0; i < imported->count; i++)
        json_decref(imported->lines[i].record);
    for (size_t i = 0; i < imported->cell_count; i++)
        free(imported->cells[i].predicted);
    free(imported->lines);
    free(imported->cells);
    for (size_t i = 0; i < imported->file_count; i++)
        free(imported->files[i].path);
    free(imported->files);
    *imported = (struct imported){0};
}

/* --- What each value is of --- */

/* A task by its name or number, or, where that is allowed, −1 for "zero-shot"; −2: neither. */
static int64_t task_of(const struct data *data, const json_t *value)
{
    const char *name = json_string_value(value);
    const json_t *number = json_is_object(value) ? json_object_get(value, "value") : value;
    for (size_t k = 0; name != NULL && k < data->task_count; k++)
        if (strcmp(data->tasks[k].settings.name, name) == 0)
            return (int64_t)k;
    if (name != NULL)
        return strcmp(name, "zero-shot") == 0 ? -1 : -2;
    double found = json_is_number(number) ? json_number_value(number) : -2;
    return found == floor(found) && found >= -1 && found < (double)data->task_count ? (int64_t)found : -2;
}

static status add_cell(struct imported *imported, const struct imported_line *line, const struct imported_cell *cell,
                       struct error *error)
{
    for (size_t i = 0; i < imported->cell_count; i++)
        if (imported->cells[i].after == cell->after && imported->cells[i].task == cell->task)
            return wrong(line, "every test once, and this one came before", error);
    GROW(imported->cells, imported->cell_count);
    imported->cells[imported->cell_count++] = *cell;
    return OK;
}

/* Half of the last digit that is printed, of a number or of a cell's text. */
static double rounding(const json_t *value, double number)
{
    const char *text = json_string_value(json_object_get(value, "text"));
    SCOPED(text_free) struct text shortest = {0};
    if (text == NULL)
        text_add_real(&shortest, number);
    const char *digits = text != NULL ? text : shortest.data, *point = strchr(digits, '.');
    return 0.5 * pow(10, point != NULL ? -(double)strspn(point + 1, "0123456789") : 0);
}

static status read_accuracy(struct imported *imported, const struct run *run, const struct imported_line *line,
                            int64_t after, size_t task, const json_t *value, struct error *error)
{
    const json_t *of = json_is_object(value) ? json_object_get(value, "value") : value;
    double unit = imported->unit, number = json_number_value(of),
           images = (double)dataset_size(run->data.tasks[task].dataset, SPLIT_TEST);
    if (!json_is_number(of))
        return wrong(line, "numbers, or null (in CSV: nothing) where nothing was measured", error);
    if (number < 0 || number > unit)
        return error_set(error, ERROR_FORMAT, "%s: line %zu: expected accuracies from 0 to %g (--unit), found %g",
                         line->file, line->number, unit, number);
    double correct = round(number / unit * images), off = fabs(correct / images * unit - number);
    if (off > rounding(value, number) * (1 + 1e-9) && imported->inexact++ == 0)
        snprintf(imported->first, sizeof imported->first, "%s, line %zu: %g of %s, whose %g images give %.6g or %.6g",
                 line->file, line->number, number, run->data.tasks[task].settings.name, images,
                 floor(number / unit * images) / images * unit, ceil(number / unit * images) / images * unit);
    return add_cell(imported, line, &(struct imported_cell){after, task, (int64_t)correct, NULL}, error);
}

/* The task of column i, which a header names; the column of stages has none. */
static int64_t column_task(const struct run *run, const json_t *columns, size_t i)
{
    return columns != NULL ? task_of(&run->data, json_array_get(columns, i)) : (int64_t)i;
}

/* Stages come one after the other, unless a line says which it is: by "after_task", in CSV by a first column that is no task. */
static status place_matrix_row(struct imported *imported, const struct run *run, const struct imported_line *line,
                               size_t stage, struct error *error)
{
    const json_t *values = json_object_get(line->record, "acc_per_task"),
                 *columns = json_object_get(line->record, "columns"),
                 *said = json_object_get(line->record, "after_task");
    size_t first = columns != NULL && column_task(run, columns, 0) < 0,
           width = columns != NULL ? json_array_size(columns) : run->data.task_count;
    if (json_array_size(values) != width || width - first > run->data.task_count)
        return error_set(error, ERROR_FORMAT, "%s: line %zu: expected a value for each of %zu columns, found %zu",
                         line->file, line->number, columns != NULL ? width : run->data.task_count,
                         json_array_size(values));
    said = first > 0 ? json_array_get(values, 0) : said;
    int64_t after = said != NULL ? task_of(&run->data, said) : (int64_t)stage;
    if (after < -1 || after >= (int64_t)run->data.task_count)
        return wrong(line, "a stage for each task, or the task (or -1) after which it was tested", error);
    for (size_t i = first; i < width; i++) {
        int64_t task = column_task(run, columns, i);
        if (task < 0)
            return error_set(error, ERROR_FORMAT,
                             "%s: its header: expected the run's tasks, found \"%s\" in column %zu", line->file,
                             json_string_value(json_array_get(columns, i)), i + 1);
        if (!json_is_null(json_array_get(values, i)))
            TRY(read_accuracy(imported, run, line, after, (size_t)task, json_array_get(values, i), error));
    }
    return OK;
}

static status place_predictions(struct imported *imported, const struct run *run, const struct imported_line *line,
                                struct error *error)
{
    const json_t *labels = json_object_get(line->record, "predicted");
    int64_t after = task_of(&run->data, json_object_get(line->record, "after_task")),
            task = task_of(&run->data, json_object_get(line->record, "task"));
    if (after < -1 || task < 0)
        return wrong(line, "\"after_task\" and \"task\": tasks of the run", error);
    const struct task *of = &run->data.tasks[task];
    size_t n = dataset_size(of->dataset, SPLIT_TEST);
    struct label_range range = data_labels(&run->data, run->model.settings.label_space, after, of);
    if (json_array_size(labels) != n)
        return error_set(error, ERROR_FORMAT, "%s: line %zu: expected %zu predictions of %s, found %zu", line->file,
                         line->number, n, of->settings.name, json_array_size(labels));
    struct imported_cell cell = {.after = after, .task = (size_t)task, .predicted = xcalloc(n, sizeof *cell.predicted)};
    for (size_t i = 0; i < n; i++) {
        const json_t *label = json_array_get(labels, i);
        json_int_t found = json_is_integer(label) ? json_integer_value(label) : -1;
        if (found < (json_int_t)range.first || found >= (json_int_t)range.end) {
            free(cell.predicted);
            return error_set(
                error, ERROR_FORMAT,
                "%s: line %zu: test image %zu of %s: expected a label from %zu to %zu, found %" JSON_INTEGER_FORMAT,
                line->file, line->number, i, of->settings.name, range.first, range.end - 1, found);
        }
        cell.predicted[i] = (uint16_t)found;
    }
    status result = add_cell(imported, line, &cell, error);
    if (result != OK)
        free(cell.predicted);
    return result;
}

status imported_place(struct imported *imported, const struct run *run, struct error *error)
{
    for (size_t i = 0; i < imported->count; i++)
        TRY(imported->predicts ? place_predictions(imported, run, &imported->lines[i], error)
                               : place_matrix_row(imported, run, &imported->lines[i], i, error));
    return imported->cell_count > 0 ? OK
                                    : error_set(error, ERROR_FORMAT, "%s: no result in it", imported->files[0].path);
}

/* --- The run --- */

static status record_cell(const struct recorder *recorder, const struct imported_cell *cell, struct error *error)
{
    SCOPED(test_set_free) struct test_set set = test_set_of(&recorder->run->data.tasks[cell->task]);
    set.correct = (size_t)cell->correct;
    if (cell->predicted != NULL) {
        memcpy(set.predicted, cell->predicted, set.n * sizeof *set.predicted);
        test_set_judge(&set);
    }
    return record_evaluation(recorder, cell->after, &set, false, error);
}

static status record_imported_file(const struct recorder *recorder, const struct imported_file *file, size_t index,
                                   struct error *error)
{
    char kind[32];
    snprintf(kind, sizeof kind, "imported %zu", index + 1);
    return store_add(recorder->store, recorder->id, "artifacts",
                     NAMED({"task", value_integer(-1)}, {"kind", value_text(kind)}, {"path", value_text(file->path)},
                           {"bytes", value_integer((int64_t)file->bytes)}, {"digest", value_text(file->digest)}),
                     error);
}

static status record_rows(const struct imported *imported, const struct recorder *recorder, struct error *error)
{
    struct store *store = recorder->store;
    TRY(record_session(recorder, error));
    TRY(record_tasks(recorder, error));
    store_begin(store);
    for (size_t i = 0; i < imported->cell_count; i++)
        TRY(record_cell(recorder, &imported->cells[i], error));
    for (size_t i = 0; i < imported->file_count; i++)
        TRY(record_imported_file(recorder, &imported->files[i], i, error));
    return store_commit(store, error);
}

/* What is stored beside what is to be: files in their order. */
struct stored {
    const struct imported *now;
    size_t count, same;
    char path[512]; /* of the first file that is another one */
};

static status read_artifact(void *context, struct statement *row, struct error *error)
{
    struct stored *stored = context;
    size_t i = stored->count++;
    bool same = i < stored->now->file_count && strcmp(stored->now->files[i].digest, statement_text(row, 1)) == 0;
    stored->same += same;
    if (!same && stored->path[0] == 0)
        snprintf(stored->path, sizeof stored->path, "%s", statement_text(row, 0));
    return OK;
}

static status compare_with(const struct imported *imported, struct store *store, int64_t run, struct error *error)
{
    struct stored stored = {.now = imported};
    TRY(database_each(store_database(store),
                      "SELECT path, digest FROM artifacts WHERE run = ?1 AND kind GLOB 'imported *' "
                      "ORDER BY CAST(substr(kind, 9) AS INTEGER)",
                      VALUES(value_integer(run)), read_artifact, &stored, error));
    if (stored.same == stored.count && stored.count == imported->file_count)
        return OK;
    return error_set(
        error, ERROR_FORMAT,
        "%s: run %" PRId64 " of %s has the results of %s for the same suite, settings, data and seed, and "
        "these are others; delete that run first (mtil runs delete), or tell them apart by --method, --settings "
        "or --seed",
        imported->files[0].path, run, store_path(store), stored.path[0] != 0 ? stored.path : "other files");
}

/* Rows of an import that was killed are there to be replaced. */
static status begin(const struct recorder *recorder, const struct run_start *start, struct error *error)
{
    return start->created ? OK : store_run_rewind(recorder->store, recorder->id, -1, 0, error);
}

status imported_record(const struct imported *imported, struct run *run, struct store *store, const struct stop *stop,
                       struct imported_result *result, struct error *error)
{
    bool counted = false;
    struct recorder recorder = {.store = store, .run = run};
    for (size_t k = 0; k < run->data.task_count; k++)
        counted = counted || run->data.tasks[k].planned;
    if (!imported->predicts)
        run->model.settings.per_image = PER_IMAGE_NONE;
    struct continuation none = {0};
    SCOPED(surveyor_close) struct surveyor surveyor = {0};
    SCOPED(inputs_free) struct inputs inputs = {0};
    struct run_start start = {0};
    struct error ignored;
    TRY(surveyor_open(&surveyor, &run->model.settings, run->model.log, NULL, stop, error));
    if (counted) {
        inputs_identify(&inputs, suite_settings_hash(run->suite), inputs.hash);
    } else {
        TRY(surveyor_tasks(run, &surveyor, error));
        TRY(inputs_read(&inputs, &surveyor, run->suite, run, error));
    }
    memcpy(run->identity, inputs.hash, sizeof run->identity);
    TRY(record_start(&recorder, &inputs, &none, &start, error));
    *result = (struct imported_result){start.run, !start.created && start.past == RUN_FINISHED};
    if (result->known) {
        status same = compare_with(imported, store, start.run, error);
        store_run_end(store, start.run, RUN_FINISHED, NULL, &ignored);
        return same;
    }
    status outcome = begin(&recorder, &start, error);
    NEXT(outcome, record_rows(imported, &recorder, error));
    NEXT(outcome, store_run_end(store, start.run, RUN_FINISHED, NULL, error));
    if (outcome != OK) {
        store_rollback(store);
        store_run_erase(store, start.run, &ignored);
    }
    return outcome;
}
