/* The classes of tasks and the true classes of their test images. */
#include <inttypes.h>
#include <stdlib.h>

#include "results/store/store_internal.h"

static status insert_class(struct store *store, int64_t run, int64_t task, int64_t class, const char *name,
                           struct error *error)
{
    TRY(rows_insert(store, INSERT_TASK_CLASS,
                    VALUES(value_integer(run), value_integer(task), value_integer(class), value_text(name)), error));
    if (database_changes(store->database) == 1)
        return OK;
    return error_set(
        error, ERROR_ARGUMENT,
        "%s: class %" PRId64 " of task %" PRId64 " of run %" PRId64
        " was recorded with another name than \"%s\", because names changed or the dataset was cut in another "
        "way; continue with the original machine, data and model, or start anew in another database",
        store_path(store), class, task, run, name);
}

status store_add_task_classes(struct store *store, int64_t run, int64_t task, const char *const *names, size_t count,
                              struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    status result = OK;
    for (size_t class = 0; class < count && result == OK; class ++)
        result = insert_class(store, run, task, (int64_t) class, names[class], error);
    return database_end(store->database, began, result, error);
}

/* --- True labels --- */

status store_add_test_labels(struct store *store, int64_t run, int64_t task, const uint16_t *labels, size_t count,
                             struct error *error)
{
    uint8_t *bytes = malloc(2 * count + 1);
    if (!bytes)
        return error_set(error, ERROR_MEMORY, "%s: out of memory for %zu labels", store_path(store), count);
    for (size_t i = 0; i < count; i++) {
        bytes[2 * i] = (uint8_t)labels[i];
        bytes[2 * i + 1] = (uint8_t)(labels[i] >> 8);
    }
    status result = rows_insert(store, INSERT_TEST_LABELS,
                                VALUES(value_integer(run), value_integer(task), value_blob(bytes, 2 * count)), error);
    free(bytes);
    if (result == OK && database_changes(store->database) != 1)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: the test images of task %" PRId64 " of run %" PRId64
                         " were recorded with other classes; restore the data, or start anew in another database",
                         store_path(store), task, run);
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

status store_read_test_labels(struct store *store, int64_t run, int64_t task, uint16_t **labels, size_t *count,
                              struct error *error)
{
    struct statement *statement;
    bool row = false;
    *labels = NULL;
    *count = 0;
    TRY(statement_open(&statement, store->database, "SELECT labels FROM test_labels WHERE run = ?1 AND task = ?2",
                       error));
    status result = statement_bind(statement, VALUES(value_integer(run), value_integer(task)), error);
    if (result == OK)
        result = statement_step(statement, &row, error);
    if (result == OK && row) {
        struct value blob = statement_value(statement, 0);
        result = labels_unpack(&blob, labels, count, error);
    }
    statement_close(statement);
    return result;
}
