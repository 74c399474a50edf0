/* Rows that are more than their columns, and the reading back that the harness needs. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
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

status store_read_per_image(struct store *store, int64_t run, int64_t after_task, int64_t task,
                            struct per_image *per_image, struct error *error)
{
    struct statement *row;
    *per_image = (struct per_image){.kind = PER_IMAGE_NONE};
    TRY(database_row(store->database,
                     "SELECT images, kind, data FROM evaluations JOIN per_image USING (run, task, after_task) "
                     "WHERE run = ?1 AND after_task = ?2 AND task = ?3",
                     VALUES(value_integer(run), value_integer(after_task), value_integer(task)), &row, error));
    if (!row)
        return OK;
    struct value data = statement_value(row, 2);
    int64_t images = data.kind == VALUE_BLOB ? statement_integer(row, 0) : 0;
    status result = per_image_unpack(
        per_image, strcmp(statement_text(row, 1), "predictions") == 0 ? PER_IMAGE_PREDICTIONS : PER_IMAGE_BITS,
        images > 0 ? (size_t)images : 0, data.bytes.data, images > 0 ? data.bytes.size : 0, error);
    statement_close(row);
    return result;
}

/* --- True classes: 16 bits each, least significant byte first --- */

status store_add_test_labels(struct store *store, int64_t run, int64_t task, const uint16_t *labels, size_t count,
                             struct error *error)
{
    uint8_t *bytes = xmalloc(2 * count + 1);
    for (size_t i = 0; i < count; i++) {
        bytes[2 * i] = (uint8_t)labels[i];
        bytes[2 * i + 1] = (uint8_t)(labels[i] >> 8);
    }
    status result = store_add(store, run, "test_labels",
                              NAMED({"task", value_integer(task)}, {"labels", value_blob(bytes, 2 * count)}), error);
    free(bytes);
    return result;
}

/* --- The matrix --- */

status store_check_tasks(const struct store *store, int64_t run, int64_t tasks, struct error *error)
{
    if (tasks >= 1 && tasks <= TASKS_LIMIT)
        return OK;
    return error_set(error, ERROR_FORMAT, "%s: run %" PRId64 ": expected 1 to %d tasks, found %" PRId64,
                     store_path(store), run, TASKS_LIMIT, tasks);
}

status store_expect_run(struct store *store, int64_t run, struct error *error)
{
    int64_t found;
    TRY(database_ask(store->database, "SELECT run FROM runs WHERE run = ?1", VALUES(value_integer(run)), &found, error));
    return found != 0 ? OK
                      : error_set(error, ERROR_ARGUMENT,
                                  "%s: there is no run %" PRId64 "; `mtil query runs` lists those there are",
                                  store_path(store), run);
}

/* Columns: task, name, images. */
static status take_task(void *context, struct statement *row, struct error *error)
{
    struct run_matrix *read = context;
    int64_t task = statement_integer(row, 0);
    (void)error;
    if (task < 0 || (size_t)task >= read->matrix.tasks || read->names[task])
        return OK;
    if (read->matrix.images)
        ((int64_t *)read->matrix.images)[task] = statement_integer(row, 2);
    read->names[task] = statement_string(row, 1);
    return OK;
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

static void make_room(struct run_matrix *read, size_t tasks, bool accumulates)
{
    size_t cells = tasks * (tasks + 1);
    double *accuracy = xmalloc(cells * sizeof *accuracy);
    for (size_t i = 0; i < cells; i++)
        accuracy[i] = NAN;
    read->names = xcalloc(tasks, sizeof *read->names);
    read->matrix = (struct accuracy_matrix){.tasks = tasks,
                                            .accuracy = accuracy,
                                            .zero_shot = accuracy + tasks * tasks,
                                            .images = accumulates ? xcalloc(tasks, sizeof(int64_t)) : NULL};
}

static status fill_matrix(struct store *store, int64_t run, struct run_matrix *read, struct error *error)
{
    const struct value of_run[] = {value_integer(run)};
    TRY(database_each(store->database, "SELECT task, name, test_images FROM tasks WHERE run = ?1", of_run, 1, take_task,
                      read, error));
    for (size_t task = 0; task < read->matrix.tasks; task++)
        if (!read->names[task])
            read->names[task] = path_format("task %zu", task);
    return database_each(store->database, "SELECT after_task, task, correct, images FROM evaluations WHERE run = ?1",
                         of_run, 1, take_accuracy, read, error);
}

status store_read_matrix(struct store *store, int64_t run, struct run_matrix *read, struct error *error)
{
    struct statement *row;
    *read = (struct run_matrix){0};
    TRY(database_row(store->database, "SELECT tasks, setting = 'class_incremental' FROM runs WHERE run = ?1",
                     VALUES(value_integer(run)), &row, error));
    if (!row)
        return store_expect_run(store, run, error);
    int64_t tasks = statement_integer(row, 0), accumulates = statement_integer(row, 1);
    statement_close(row);
    TRY(store_check_tasks(store, run, tasks, error));
    make_room(read, (size_t)tasks, accumulates != 0);
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

status store_read_record(struct store *store, int64_t run, struct run_record *record, struct error *error)
{
    struct statement *row;
    *record = (struct run_record){0};
    TRY(database_row(store->database,
                     "SELECT suite_text, (SELECT total(seconds) FROM timings WHERE timings.run = runs.run), "
                     "(SELECT coalesce(max(peak_bytes), 0) FROM timings WHERE timings.run = runs.run), "
                     "(SELECT value FROM settings WHERE settings.run = runs.run AND key = 'run.threads') "
                     "FROM runs WHERE run = ?1",
                     VALUES(value_integer(run)), &row, error));
    if (!row)
        return store_expect_run(store, run, error);
    *record = (struct run_record){.suite_text = xstrdup(statement_text(row, 0)),
                                  .seconds = statement_value(row, 1).real,
                                  .peak_bytes = statement_integer(row, 2),
                                  .threads = statement_integer(row, 3)};
    statement_close(row);
    return OK;
}

void run_record_free(struct run_record *record)
{
    free(record->suite_text);
    *record = (struct run_record){0};
}
