/* Rows that are more than their columns, and the reading back that the harness needs. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/text.h"
#include "results/store/store_internal.h"

#define TASKS_LIMIT 4096 /* the schema's */

/* --- Results per image --- */

static status add_per_image(struct store *store, int64_t run, const struct evaluation_row *row, struct error *error)
{
    const struct per_image *kept = row->per_image;
    struct bytes packed;
    if ((int64_t)kept->images != row->images || (int64_t)per_image_correct(kept) != row->correct)
        return error_set(error, ERROR_ARGUMENT,
                         "run %" PRId64 ": the per-image results hold %zu right of %zu images, the evaluation %" PRId64
                         " of %" PRId64,
                         run, per_image_correct(kept), kept->images, row->correct, row->images);
    TRY(per_image_pack(kept, &packed, error));
    status result = store_add(store, run, "per_image",
                              NAMED({"task", value_integer(row->task)}, {"after_task", value_integer(row->after_task)},
                                    {"kind", value_text(per_image_name(kept->kind))},
                                    {"data", value_blob(packed.data, packed.size)}),
                              error);
    bytes_free(&packed);
    return result;
}

status store_add_evaluation(struct store *store, int64_t run, const struct evaluation_row *row, struct error *error)
{
    bool began = false;
    if (!store->collects)
        TRY(database_begin(store->database, &began, error));
    status result = store_add(store, run, "evaluations",
                              NAMED({"task", value_integer(row->task)}, {"after_task", value_integer(row->after_task)},
                                    {"correct", value_integer(row->correct)}, {"images", value_integer(row->images)}),
                              error);
    if (result == OK && row->per_image && row->per_image->kind != PER_IMAGE_NONE)
        result = add_per_image(store, run, row, error);
    return database_end(store->database, began, result, error);
}

static status take_per_image(void *context, struct statement *row, struct error *error)
{
    struct value images = statement_value(row, 0), data = statement_value(row, 2);
    bool predictions = strcmp(statement_text(row, 1), "predictions") == 0;
    bool blob = data.kind == VALUE_BLOB && images.kind == VALUE_INTEGER && images.integer > 0;
    return per_image_unpack(context, predictions ? PER_IMAGE_PREDICTIONS : PER_IMAGE_BITS,
                            blob ? (size_t)images.integer : 0, blob ? data.bytes.data : NULL,
                            blob ? data.bytes.size : 0, error);
}

status store_read_per_image(struct store *store, int64_t run, int64_t after_task, int64_t task,
                            struct per_image *per_image, struct error *error)
{
    *per_image = (struct per_image){.kind = PER_IMAGE_NONE};
    return database_each(store->database,
                         "SELECT images, kind, data FROM evaluations JOIN per_image USING (run, task, after_task) "
                         "WHERE run = ?1 AND after_task = ?2 AND task = ?3",
                         VALUES(value_integer(run), value_integer(after_task), value_integer(task)), take_per_image,
                         per_image, error);
}

status store_add_test_labels(struct store *store, int64_t run, int64_t task, const uint16_t *labels, size_t count,
                             struct error *error)
{
    uint8_t *bytes = malloc(2 * count + 1);
    if (!bytes)
        return error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
    for (size_t i = 0; i < count; i++) {
        bytes[2 * i] = (uint8_t)labels[i];
        bytes[2 * i + 1] = (uint8_t)(labels[i] >> 8);
    }
    status result = store_add(store, run, "test_labels",
                              NAMED({"task", value_integer(task)}, {"labels", value_blob(bytes, 2 * count)}), error);
    free(bytes);
    return result;
}

status labels_unpack(const struct value *blob, uint16_t **labels, size_t *count, struct error *error)
{
    size_t size = blob->kind == VALUE_BLOB ? blob->bytes.size : 0;
    const uint8_t *bytes = blob->bytes.data;
    *count = size / 2;
    *labels = malloc(size + 1);
    if (!*labels)
        return error_set(error, ERROR_MEMORY, "out of memory for %zu labels", *count);
    for (size_t i = 0; i < *count; i++)
        (*labels)[i] = (uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
    return OK;
}

/* --- The matrix --- */

status store_check_tasks(const struct store *store, int64_t run, int64_t tasks, struct error *error)
{
    if (tasks >= 1 && tasks <= TASKS_LIMIT)
        return OK;
    return error_set(error, ERROR_FORMAT, "%s: run %" PRId64 ": expected 1 to %d tasks, found %" PRId64,
                     store_path(store), run, TASKS_LIMIT, tasks);
}

static status refuse_missing_run(const struct store *store, int64_t run, struct error *error)
{
    return error_set(error, ERROR_ARGUMENT, "%s: there is no run %" PRId64 "; `mtil query runs` lists those there are",
                     store_path(store), run);
}

/* Columns: task, name, images. */
static status take_task(void *context, struct statement *row, struct error *error)
{
    struct run_matrix *read = context;
    int64_t task = statement_integer(row, 0);
    if (task < 0 || (size_t)task >= read->matrix.tasks || read->names[task])
        return OK;
    if (read->matrix.images)
        ((int64_t *)read->matrix.images)[task] = statement_integer(row, 2);
    return statement_copy(row, 1, &read->names[task], error);
}

/* Columns: after_task, task, percent. */
static status take_accuracy(void *context, struct statement *row, struct error *error)
{
    struct run_matrix *read = context;
    int64_t after_task = statement_integer(row, 0), task = statement_integer(row, 1),
            tasks = (int64_t)read->matrix.tasks;
    (void)error;
    if (task < 0 || task >= tasks || after_task < -1 || after_task >= tasks)
        return OK;
    double *to = after_task < 0 ? (double *)read->matrix.zero_shot
                                : (double *)read->matrix.accuracy + (size_t)(after_task * tasks);
    to[task] = 100.0 * (double)statement_integer(row, 2) / (double)statement_integer(row, 3);
    return OK;
}

/* Columns: tasks, whether it is class-incremental. Makes room. */
static status take_size(void *context, struct statement *row, struct error *error)
{
    struct run_matrix *read = context;
    int64_t tasks = statement_integer(row, 0);
    if (tasks < 1 || tasks > TASKS_LIMIT)
        return error_set(error, ERROR_FORMAT, "expected 1 to %d tasks, found %" PRId64, TASKS_LIMIT, tasks);
    size_t count = (size_t)tasks, cells = count * (count + 1);
    double *accuracy = malloc(array_size(cells, sizeof *accuracy));
    bool accumulates = statement_integer(row, 1) != 0;
    read->names = calloc(count, sizeof *read->names);
    read->matrix = (struct accuracy_matrix){.tasks = count,
                                            .accuracy = accuracy,
                                            .zero_shot = accuracy ? accuracy + count * count : NULL,
                                            .images = accumulates ? calloc(count, sizeof(int64_t)) : NULL};
    for (size_t i = 0; accuracy && i < cells; i++)
        accuracy[i] = NAN;
    return accuracy && read->names && (read->matrix.images || !accumulates)
               ? OK
               : error_set(error, ERROR_MEMORY, "out of memory for %zu tasks", count);
}

static status fill_matrix(struct store *store, int64_t run, struct run_matrix *read, struct error *error)
{
    const struct value of_run[] = {value_integer(run)};
    if (database_each(store->database, "SELECT tasks, setting = 'class_incremental' FROM runs WHERE run = ?1", of_run,
                      1, take_size, read, error) != OK)
        return error_context(error, "%s: run %" PRId64, store_path(store), run);
    if (!read->names)
        return refuse_missing_run(store, run, error);
    TRY(database_each(store->database, "SELECT task, name, test_images FROM tasks WHERE run = ?1", of_run, 1, take_task,
                      read, error));
    for (size_t task = 0; task < read->matrix.tasks; task++)
        if (!read->names[task] && !(read->names[task] = path_format("task %zu", task)))
            return error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
    return database_each(store->database, "SELECT after_task, task, correct, images FROM evaluations WHERE run = ?1",
                         of_run, 1, take_accuracy, read, error);
}

status store_read_matrix(struct store *store, int64_t run, struct run_matrix *read, struct error *error)
{
    *read = (struct run_matrix){0};
    status result = fill_matrix(store, run, read, error);
    if (result != OK)
        run_matrix_free(read);
    return result;
}

void run_matrix_free(struct run_matrix *matrix)
{
    for (size_t task = 0; matrix->names && task < matrix->matrix.tasks; task++)
        free(matrix->names[task]);
    free(matrix->names);
    free((double *)matrix->matrix.accuracy);
    free((int64_t *)matrix->matrix.images);
    *matrix = (struct run_matrix){0};
}

/* --- The record --- */

static status take_record(void *context, struct statement *row, struct error *error)
{
    struct run_record *record = context;
    *record = (struct run_record){.seconds = statement_value(row, 2).real,
                                  .peak_bytes = statement_integer(row, 3),
                                  .threads = statement_integer(row, 4)};
    TRY(statement_copy(row, 0, &record->suite_text, error));
    return statement_copy(row, 1, &record->message, error);
}

status store_read_record(struct store *store, int64_t run, struct run_record *record, struct error *error)
{
    *record = (struct run_record){0};
    status result =
        database_each(store->database,
                      "SELECT suite_text, message, (SELECT total(seconds) FROM timings WHERE timings.run = runs.run), "
                      "(SELECT coalesce(max(peak_bytes), 0) FROM timings WHERE timings.run = runs.run), "
                      "(SELECT value FROM settings WHERE settings.run = runs.run AND key = 'run.threads') "
                      "FROM runs WHERE run = ?1",
                      VALUES(value_integer(run)), take_record, record, error);
    if (result == OK && !record->suite_text)
        result = refuse_missing_run(store, run, error);
    if (result != OK)
        run_record_free(record);
    return result;
}

void run_record_free(struct run_record *record)
{
    free(record->suite_text);
    free(record->message);
    *record = (struct run_record){0};
}
