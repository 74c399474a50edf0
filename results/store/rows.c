/* Rows that are more than their columns. */
#include <inttypes.h>
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

status store_check_tasks(const struct store *store, int64_t run, int64_t tasks, struct error *error)
{
    if (tasks >= 1 && tasks <= TASKS_LIMIT)
        return OK;
    return error_set(error, ERROR_FORMAT, "%s: run %" PRId64 ": expected 1 to %d tasks, found %" PRId64,
                     store_path(store), run, TASKS_LIMIT, tasks);
}
