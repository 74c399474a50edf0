#include "results/store/per_image.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "classes, routers and labels are stored as they lie in memory");

static const char *const kind_names[] = {"none", "bits", "predictions"};

const char *per_image_name(enum per_image_kind kind)
{
    return kind_names[kind];
}

size_t per_image_correct(const struct per_image *per_image)
{
    size_t correct = 0;
    for (size_t i = 0; i < per_image->images; i++)
        correct += per_image->right[i] != 0;
    return correct;
}

static size_t bits_size(size_t images)
{
    return images / 8 + (images % 8 != 0);
}

static size_t packed_size(enum per_image_kind kind, size_t images)
{
    if (kind == PER_IMAGE_NONE || images > INT_MAX)
        return 0;
    return bits_size(images) + (kind == PER_IMAGE_PREDICTIONS ? 4 * images : 0);
}

status per_image_pack(const struct per_image *per_image, struct bytes *packed, struct error *error)
{
    size_t images = per_image->images, size = packed_size(per_image->kind, images);
    if (size == 0)
        return error_set(error, ERROR_ARGUMENT, "per-image results of kind %s and %zu images cannot be stored",
                         per_image_name(per_image->kind), images);
    *packed = (struct bytes){.data = xcalloc(size + 1, 1), .size = size};
    for (size_t i = 0; i < images; i++)
        packed->data[i / 8] |= (uint8_t)((per_image->right[i] != 0) << (i % 8));
    if (per_image->kind == PER_IMAGE_PREDICTIONS) {
        uint8_t *predicted = packed->data + bits_size(images);
        memcpy(predicted, per_image->predicted, 2 * images);
        memcpy(predicted + 2 * images, per_image->router, 2 * images);
    }
    return OK;
}

status per_image_unpack(struct per_image *per_image, enum per_image_kind kind, size_t images, const uint8_t *data,
                        size_t size, struct error *error)
{
    *per_image = (struct per_image){.kind = PER_IMAGE_NONE};
    size_t expected = packed_size(kind, images);
    if (size != expected || size == 0)
        return error_set(error, ERROR_FORMAT, "per-image results (%s) of %zu images: expected %zu bytes, found %zu",
                         per_image_name(kind), images, expected, size);
    *per_image = (struct per_image){.kind = kind, .images = images, .right = xmalloc(images)};
    for (size_t i = 0; i < images; i++)
        per_image->right[i] = data[i / 8] >> (i % 8) & 1;
    if (kind == PER_IMAGE_BITS)
        return OK;
    per_image->predicted = memcpy(xmalloc(2 * images), data + bits_size(images), 2 * images);
    per_image->router = memcpy(xmalloc(2 * images), data + bits_size(images) + 2 * images, 2 * images);
    return OK;
}

void per_image_free(struct per_image *per_image)
{
    free(per_image->right);
    free(per_image->predicted);
    free(per_image->router);
    *per_image = (struct per_image){.kind = PER_IMAGE_NONE};
}

/* --- As a table of SQL --- */

enum { IMAGE, TRUTH, RIGHT, PREDICTED, ROUTER, RUN, TASK, AFTER_TASK, ARGUMENTS = 3 };

struct images_table {
    sqlite3_vtab base;
    sqlite3 *connection;
};

struct images_cursor {
    sqlite3_vtab_cursor base;
    struct per_image images;
    uint8_t *labels; /* as stored, 2 bytes an image; NULL: none */
    int64_t argument[ARGUMENTS];
    size_t at;
};

static int refuse(struct images_cursor *cursor, const char *message)
{
    sqlite3_free(cursor->base.pVtab->zErrMsg);
    cursor->base.pVtab->zErrMsg =
        sqlite3_mprintf("run %lld, task %lld, after task %lld: %s", (long long)cursor->argument[0],
                        (long long)cursor->argument[1], (long long)cursor->argument[2], message);
    return SQLITE_CORRUPT_VTAB;
}

static int connect_table(sqlite3 *connection, void *context, int count, const char *const *argument,
                         sqlite3_vtab **table, char **message)
{
    int code = sqlite3_declare_vtab(connection, "CREATE TABLE images (image, truth, \"right\", predicted, router, "
                                                "run HIDDEN, task HIDDEN, after_task HIDDEN)");
    if (code != SQLITE_OK)
        return code;
    struct images_table *made = xcalloc(1, sizeof *made);
    made->connection = connection;
    *table = &made->base;
    sqlite3_vtab_config(connection, SQLITE_VTAB_INNOCUOUS);
    return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *table)
{
    free(table);
    return SQLITE_OK;
}

/* All three arguments have to be given. */
static int choose_plan(sqlite3_vtab *table, sqlite3_index_info *plan)
{
    int given = 0;
    for (int i = 0; i < plan->nConstraint; i++) {
        if (plan->aConstraint[i].iColumn < RUN || plan->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        if (!plan->aConstraint[i].usable)
            return SQLITE_CONSTRAINT;
        plan->aConstraintUsage[i].argvIndex = plan->aConstraint[i].iColumn - RUN + 1;
        plan->aConstraintUsage[i].omit = 1;
        given |= 1 << (plan->aConstraint[i].iColumn - RUN);
    }
    plan->estimatedRows = 10000;
    plan->estimatedCost = 10000;
    return given == (1 << ARGUMENTS) - 1 ? SQLITE_OK : SQLITE_CONSTRAINT;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor)
{
    *cursor = xcalloc(1, sizeof(struct images_cursor));
    return SQLITE_OK;
}

static void clear(struct images_cursor *cursor)
{
    per_image_free(&cursor->images);
    free(cursor->labels);
    cursor->labels = NULL;
    cursor->at = 0;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    struct images_cursor *cursor = (struct images_cursor *)base;
    clear(cursor);
    free(cursor);
    return SQLITE_OK;
}

static size_t label_at(const uint8_t *labels, size_t image)
{
    return (size_t)(labels[2 * image] | labels[2 * image + 1] << 8);
}

static enum per_image_kind kind_of(const unsigned char *name)
{
    return name != NULL && strcmp((const char *)name, per_image_name(PER_IMAGE_PREDICTIONS)) == 0
               ? PER_IMAGE_PREDICTIONS
               : PER_IMAGE_BITS;
}

/* Columns of row: kind, data, images of the evaluation, labels. */
static int take(struct images_cursor *cursor, sqlite3_stmt *row)
{
    size_t images = (size_t)sqlite3_column_int64(row, 2), size = (size_t)sqlite3_column_bytes(row, 3);
    const void *labels = sqlite3_column_blob(row, 3);
    struct error error;
    if (per_image_unpack(&cursor->images, kind_of(sqlite3_column_text(row, 0)), images, sqlite3_column_blob(row, 1),
                         (size_t)sqlite3_column_bytes(row, 1), &error) != OK)
        return refuse(cursor, error.message);
    if (labels != NULL && size != 2 * images)
        return refuse(cursor, "labels that do not fit its images");
    cursor->labels = labels != NULL ? memcpy(xmalloc(size), labels, size) : NULL;
    return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *name, int count, sqlite3_value **argument)
{
    struct images_cursor *cursor = (struct images_cursor *)base;
    sqlite3 *connection = ((struct images_table *)base->pVtab)->connection;
    sqlite3_stmt *row;
    clear(cursor);
    int code =
        sqlite3_prepare_v2(connection,
                           "SELECT kind, data, images, labels FROM per_image JOIN evaluations USING (run, task, "
                           "after_task) LEFT JOIN test_labels USING (run, task) WHERE run = ?1 AND task = ?2 AND "
                           "after_task = ?3",
                           -1, &row, NULL);
    for (int i = 0; i < count && code == SQLITE_OK; i++) {
        cursor->argument[i] = sqlite3_value_int64(argument[i]);
        code = sqlite3_bind_value(row, i + 1, argument[i]);
    }
    if (code == SQLITE_OK)
        code = sqlite3_step(row);
    int result = code == SQLITE_ROW ? take(cursor, row) : code == SQLITE_DONE ? SQLITE_OK : code;
    sqlite3_finalize(row);
    return result;
}

static int next(sqlite3_vtab_cursor *base)
{
    ((struct images_cursor *)base)->at++;
    return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    const struct images_cursor *cursor = (const struct images_cursor *)base;
    return cursor->at >= cursor->images.images;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
    const struct images_cursor *cursor = (const struct images_cursor *)base;
    const struct per_image *images = &cursor->images;
    size_t at = cursor->at;
    if (number == IMAGE)
        sqlite3_result_int64(context, (sqlite3_int64)at);
    else if (number == TRUTH && cursor->labels != NULL)
        sqlite3_result_int(context, (int)label_at(cursor->labels, at));
    else if (number == RIGHT)
        sqlite3_result_int(context, images->right[at]);
    else if (number == PREDICTED && images->kind == PER_IMAGE_PREDICTIONS)
        sqlite3_result_int(context, images->predicted[at]);
    else if (number == ROUTER && images->kind == PER_IMAGE_PREDICTIONS)
        sqlite3_result_int(context, images->router[at]);
    else if (number >= RUN)
        sqlite3_result_int64(context, cursor->argument[number - RUN]);
    return SQLITE_OK;
}

static int row_number(sqlite3_vtab_cursor *base, sqlite3_int64 *number)
{
    *number = (sqlite3_int64)((const struct images_cursor *)base)->at;
    return SQLITE_OK;
}

/* --- What contradicts something else --- */

static bool unpack(struct per_image *images, enum per_image_kind kind, sqlite3_value *count, sqlite3_value *data)
{
    struct error error;
    return per_image_unpack(images, kind, (size_t)sqlite3_value_int64(count), sqlite3_value_blob(data),
                            (size_t)sqlite3_value_bytes(data), &error) == OK;
}

/* image_counts(kind, data, images, labels, classes, offset, competing, newest, zero_shot): JSON of how many images are
 * right, contradict something, and have each router; null for data that do not fit the images. offset: classes of earlier
 * tasks among the competing ones; newest: the last trained task, below 0: no router is chosen. An image without router
 * has zero-shot CLIP's answer. A label is wrong if it is none of the task's classes, or if its prediction is marked right
 * but differs from it, or marked wrong but equals it. */
static void count_images(sqlite3_context *context, int count, sqlite3_value **argument)
{
    enum { KIND, DATA, IMAGES, LABELS, CLASSES, OFFSET, COMPETING, NEWEST, ZERO_SHOT, TASKS_MOST = 4096, COUNTS = 5 };
    static const char *const names[COUNTS] = {
        "right", "classes that no task has", "images with a router that was not trained",
        "images without a router that differ from zero-shot CLIP", "labels that contradict predictions"};
    SCOPED(per_image_free) struct per_image kept = {0}, zero_shot = {0};
    SCOPED(text_free) struct text json = {0};
    if (!unpack(&kept, kind_of(sqlite3_value_text(argument[KIND])), argument[IMAGES], argument[DATA]))
        return;
    bool compared = unpack(&zero_shot, PER_IMAGE_PREDICTIONS, argument[IMAGES], argument[ZERO_SHOT]);
    const uint8_t *labels = sqlite3_value_blob(argument[LABELS]);
    if ((size_t)sqlite3_value_bytes(argument[LABELS]) != 2 * kept.images)
        labels = NULL;
    int64_t classes = sqlite3_value_int64(argument[CLASSES]), offset = sqlite3_value_int64(argument[OFFSET]),
            competing = sqlite3_value_int64(argument[COMPETING]), newest = sqlite3_value_int64(argument[NEWEST]);
    bool predictions = kept.kind == PER_IMAGE_PREDICTIONS, routed = predictions && newest >= 0;
    size_t routers = routed ? (size_t)(newest < TASKS_MOST ? newest : TASKS_MOST) + 2 : 0; /* the first: none */
    size_t counts[COUNTS] = {0};
    OWNED size_t *sent = xcalloc(routers + 1, sizeof *sent);
    for (size_t i = 0; i < kept.images; i++) {
        int64_t label = labels != NULL ? (int64_t)label_at(labels, i) : -1, router = routed ? kept.router[i] : -1;
        counts[0] += kept.right[i];
        counts[1] += predictions && kept.predicted[i] >= competing;
        counts[2] += routed && router > newest;
        counts[3] += routed && router < 0 && compared && zero_shot.predicted[i] != kept.predicted[i];
        counts[4] += label >= 0 && (label >= classes ||
                                    (predictions && (kept.predicted[i] == label + offset) != (kept.right[i] != 0)));
        if (routed && router >= -1 && (size_t)(router + 1) < routers)
            sent[router + 1]++;
    }
    for (size_t i = 0; i < COUNTS; i++)
        text_add(&json, "%s\"%s\": %zu", i ? ", " : "{", names[i], counts[i]);
    for (size_t i = 0; i < routers; i++)
        text_add(&json, "%s\"%d\": %zu", i ? ", " : ", \"routers\": {", (int)i - 1, sent[i]);
    text_add(&json, routers > 0 ? "}}" : "}");
    sqlite3_result_text(context, json.data, -1, SQLITE_TRANSIENT);
}

int per_image_register(struct sqlite3 *connection)
{
    static const sqlite3_module module = {
        .xConnect = connect_table,
        .xBestIndex = choose_plan,
        .xDisconnect = disconnect,
        .xOpen = open_cursor,
        .xClose = close_cursor,
        .xFilter = filter,
        .xNext = next,
        .xEof = is_at_end,
        .xColumn = column,
        .xRowid = row_number,
    };
    int code = sqlite3_create_function_v2(connection, "image_counts", 9, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL,
                                          count_images, NULL, NULL, NULL);
    return code == SQLITE_OK ? sqlite3_create_module_v2(connection, "images", &module, NULL, NULL) : code;
}
