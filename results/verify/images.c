/* Checks results per image with their labels, with zero-shot CLIP's answers and, in the temporary table image_routers,
 * with the choices of routers (results/checks/). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "results/verify/internal.h"

enum { OF_RUN, OF_TASK, AFTER_TASK, KIND, DATA, CORRECT, IMAGES, LABELS, CLASSES, OFFSET, COMPETING, SELECTS, TASKS };

static const char images_sql[] =
    "SELECT run, task, after_task, kind, data, correct, images, labels, classes, iif(together, (SELECT total(classes) "
    "FROM tasks AS before WHERE before.run = per_image.run AND before.task < per_image.task), 0), iif(together, "
    "(SELECT "
    "total(classes) FROM tasks AS other WHERE other.run = per_image.run), classes), selector <> 'none' AND setting <> "
    "'class_incremental', runs.tasks FROM per_image CROSS JOIN evaluations USING (run, task, after_task) JOIN tasks "
    "USING "
    "(run, task) JOIN (SELECT *, setting IN ('x_tail', 'class_incremental') AS together FROM runs) AS runs USING (run) "
    "LEFT JOIN test_labels USING (run, task) ORDER BY per_image.run, per_image.task, per_image.after_task";

/* An evaluation, and zero-shot CLIP's of the same images where that is known. */
struct images {
    const struct verifying *v;
    struct statement *row, *insert;
    char where[80];
    int64_t run, task;
    struct per_image kept, zero_shot;
};

static void report(const struct images *images, const char *what, double expected, double found)
{
    verify_fault_real(images->v, images->run, what, images->where, expected, found);
}

/* Images whose true class is none of the task's, or whose prediction is marked right but differs from it, or marked
 * wrong but equals it. */
static status check_labels(const struct images *images, struct error *error)
{
    const struct per_image *kept = &images->kept;
    struct value blob = statement_value(images->row, LABELS);
    int64_t classes = statement_integer(images->row, CLASSES), offset = statement_integer(images->row, OFFSET);
    uint16_t *labels;
    size_t count, wrong = 0;
    if (blob.kind == VALUE_NULL)
        return OK;
    TRY(labels_unpack(&blob, &labels, &count, error));
    for (size_t i = 0; count == kept->images && i < count; i++) {
        bool hit =
            kept->kind == PER_IMAGE_PREDICTIONS ? kept->predicted[i] == (int64_t)labels[i] + offset : kept->right[i];
        wrong += labels[i] >= classes || hit != (kept->right[i] != 0);
    }
    free(labels);
    if (count != kept->images)
        report(images, "labels", (double)kept->images, (double)count);
    else if (wrong > 0)
        report(images, "labels that contradict predictions", 0, (double)wrong);
    return OK;
}

/* Without a router an image is answered by zero-shot CLIP. */
static void check_predictions(const struct images *images)
{
    const struct per_image *kept = &images->kept, *zero_shot = &images->zero_shot;
    int64_t classes = statement_integer(images->row, COMPETING),
            after_task = statement_integer(images->row, AFTER_TASK);
    bool selects = statement_integer(images->row, SELECTS) != 0 && after_task >= 0;
    size_t outside = 0, untrained = 0, other = 0;
    for (size_t i = 0; i < kept->images; i++) {
        outside += kept->predicted[i] >= classes;
        untrained += kept->router[i] > after_task && selects;
        other += selects && kept->router[i] < 0 && zero_shot->images == kept->images &&
                 zero_shot->predicted[i] != kept->predicted[i];
    }
    if (outside > 0)
        report(images, "classes that no task has", 0, (double)outside);
    if (untrained > 0)
        report(images, "images with a router that was not trained", 0, (double)untrained);
    if (other > 0)
        report(images, "images without a router that differ from zero-shot CLIP", 0, (double)other);
}

static status count_routers(const struct images *images, struct error *error)
{
    int64_t tasks = statement_integer(images->row, TASKS);
    int64_t *counts = calloc((size_t)tasks + 1, sizeof *counts);
    status result =
        counts != NULL ? OK : error_set(error, ERROR_MEMORY, "images: no memory for %" PRId64 " routers", tasks);
    for (size_t i = 0; result == OK && i < images->kept.images; i++)
        if (images->kept.router[i] >= -1 && images->kept.router[i] < tasks)
            counts[images->kept.router[i] + 1]++;
    for (int64_t router = -1; result == OK && router < tasks; router++)
        if (counts[router + 1] > 0)
            result = statement_run(images->insert,
                                   VALUES(value_integer(images->run), value_integer(images->task),
                                          value_integer(statement_integer(images->row, AFTER_TASK)),
                                          value_integer(router), value_integer(counts[router + 1])),
                                   error);
    free(counts);
    return result;
}

static status unpack(const struct images *images, struct per_image *kept, struct error *error)
{
    struct value data = statement_value(images->row, DATA);
    bool predictions = strcmp(statement_text(images->row, KIND), "predictions") == 0, blob = data.kind == VALUE_BLOB;
    return per_image_unpack(kept, predictions ? PER_IMAGE_PREDICTIONS : PER_IMAGE_BITS,
                            (size_t)statement_integer(images->row, IMAGES), blob ? data.bytes.data : NULL,
                            blob ? data.bytes.size : 0, error);
}

static status check_unpacked(struct images *images, struct error *error)
{
    int64_t after_task = statement_integer(images->row, AFTER_TASK), correct = statement_integer(images->row, CORRECT);
    double right = (double)per_image_correct(&images->kept);
    if (right != (double)correct)
        report(images, "images", (double)correct, right);
    if (images->kept.kind == PER_IMAGE_PREDICTIONS) {
        check_predictions(images);
        if (statement_integer(images->row, SELECTS) != 0 && after_task >= 0)
            TRY(count_routers(images, error));
    }
    return check_labels(images, error);
}

static status check_row(struct images *images, struct error *error)
{
    int64_t run = statement_integer(images->row, OF_RUN), task = statement_integer(images->row, OF_TASK),
            after_task = statement_integer(images->row, AFTER_TASK);
    if (run != images->run || task != images->task)
        per_image_free(&images->zero_shot);
    images->run = run;
    images->task = task;
    snprintf(images->where, sizeof images->where, "task %" PRId64 ", after task %" PRId64, task, after_task);
    status result = unpack(images, &images->kept, error);
    if (result == ERROR_FORMAT) {
        verify_fault(images->v,
                     &(struct verify_fault){run, "images", images->where, "as many as were tested", "others"});
        return OK;
    }
    TRY(result);
    result = check_unpacked(images, error);
    if (after_task < 0 && images->kept.kind == PER_IMAGE_PREDICTIONS) {
        images->zero_shot = images->kept;
        images->kept = (struct per_image){0};
    }
    per_image_free(&images->kept);
    return result;
}

status verify_per_image(const struct verifying *v, struct error *error)
{
    struct images images = {.v = v, .run = -1};
    int64_t count = 0;
    TRY(database_execute(
        v->store->database,
        "CREATE TEMP TABLE image_routers (run INTEGER, task INTEGER, after_task INTEGER, router INTEGER, images, "
        "PRIMARY KEY (run, task, after_task, router)) WITHOUT ROWID",
        error));
    status result = statement_open(&images.insert, v->store->database,
                                   "INSERT INTO image_routers VALUES (?1, ?2, ?3, ?4, ?5)", error);
    NEXT(result, statement_open(&images.row, v->store->database, images_sql, error));
    for (bool row; result == OK && (result = statement_step(images.row, &row, error)) == OK && row;) {
        if (!verify_wants(v, statement_integer(images.row, OF_RUN)))
            continue;
        result = check_row(&images, error);
        count++;
    }
    per_image_free(&images.zero_shot);
    statement_close(images.row);
    statement_close(images.insert);
    if (result == OK)
        verify_checked(v, "evaluations with images", count);
    return result;
}
