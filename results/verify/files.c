/* Checks results per image, and files that were written beside the database. */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/digest.h"
#include "results/verify/internal.h"

/* --- Images --- */

enum { OF_RUN, OF_TASK, AFTER_TASK, KIND, DATA, CORRECT, IMAGES, LABELS, CLASSES, OFFSET }; /* of an evaluation */

/* Reports images whose true class is none of the task's, or whose prediction is marked right but differs from it, or
 * marked wrong but equals it. */
static status check_labels(const struct verifying *v, struct statement *row, const struct per_image *kept,
                           const char *where, struct error *error)
{
    struct value blob = statement_value(row, LABELS);
    int64_t run = statement_integer(row, OF_RUN), classes = statement_integer(row, CLASSES),
            offset = statement_integer(row, OFFSET);
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
        verify_fault_real(v, run, "labels", where, (double)kept->images, (double)count);
    else if (wrong > 0)
        verify_fault_real(v, run, "labels that contradict predictions", where, 0, (double)wrong);
    return OK;
}

static status check_images(const struct verifying *v, struct statement *row, struct error *error)
{
    char where[80];
    struct value data = statement_value(row, DATA);
    struct per_image kept;
    bool predictions = strcmp(statement_text(row, KIND), "predictions") == 0;
    int64_t run = statement_integer(row, OF_RUN), images = statement_integer(row, IMAGES);
    snprintf(where, sizeof where, "task %" PRId64 ", after task %" PRId64, statement_integer(row, OF_TASK),
             statement_integer(row, AFTER_TASK));
    status result = per_image_unpack(&kept, predictions ? PER_IMAGE_PREDICTIONS : PER_IMAGE_BITS, (size_t)images,
                                     data.kind == VALUE_BLOB ? data.bytes.data : NULL,
                                     data.kind == VALUE_BLOB ? data.bytes.size : 0, error);
    if (result == ERROR_FORMAT) {
        char size[40];
        snprintf(size, sizeof size, "%zu bytes", data.kind == VALUE_BLOB ? data.bytes.size : 0);
        verify_fault(v, &(struct verify_fault){run, "images", where, "as many as were tested", size});
        return OK;
    }
    TRY(result);
    double correct = (double)per_image_correct(&kept);
    if (correct != (double)statement_integer(row, CORRECT))
        verify_fault_real(v, run, "images", where, (double)statement_integer(row, CORRECT), correct);
    result = check_labels(v, row, &kept, where, error);
    per_image_free(&kept);
    return result;
}

status verify_per_image(const struct verifying *v, struct error *error)
{
    struct statement *rows;
    status result;
    int64_t count = 0;
    TRY(statement_open(&rows, v->store->database,
                       "SELECT run, task, after_task, kind, data, correct, images, labels, classes, "
                       "iif(setting IN ('x_tail', 'class_incremental'), (SELECT total(classes) FROM tasks AS before "
                       "WHERE before.run = per_image.run AND before.task < per_image.task), 0) "
                       "FROM per_image JOIN evaluations USING (run, task, after_task) JOIN tasks USING (run, task) "
                       "JOIN runs USING (run) LEFT JOIN test_labels USING (run, task)",
                       error));
    for (bool row; (result = statement_step(rows, &row, error)) == OK && row;) {
        if (!verify_wants(v, statement_integer(rows, 0)))
            continue;
        result = check_images(v, rows, error);
        if (result != OK)
            break;
        count++;
    }
    statement_close(rows);
    if (result == OK)
        verify_checked(v, "evaluations with images", count);
    return result;
}

/* --- Files --- */

/* The file itself is not opened unless it is a regular one of that size. */
static status check_artifact(const struct verifying *v, struct statement *row, int64_t *count, struct error *error)
{
    enum { RUN, PATH, BYTES, DIGEST };
    struct stat information;
    char found[DIGEST_SIZE];
    int64_t run = statement_integer(row, RUN);
    const char *path = statement_text(row, PATH), *digest = statement_text(row, DIGEST);
    if (stat(path, &information) != 0) {
        v->verification->missing_files++;
        return OK;
    }
    ++*count;
    if (!S_ISREG(information.st_mode) || information.st_size != statement_integer(row, BYTES)) {
        char sizes[2][40];
        snprintf(sizes[0], sizeof sizes[0], "%" PRId64 " bytes", statement_integer(row, BYTES));
        snprintf(sizes[1], sizeof sizes[1], "%" PRId64 " bytes", (int64_t)information.st_size);
        verify_fault(v, &(struct verify_fault){run, "files", path, sizes[0],
                                               S_ISREG(information.st_mode) ? sizes[1] : "no file"});
        return OK;
    }
    if (strlen(digest) != DIGEST_SIZE - 1)
        return OK;
    TRY(digest_file(path, found, error));
    if (strcmp(found, digest) != 0)
        verify_fault(v, &(struct verify_fault){run, "files", path, digest, found});
    return OK;
}

/* Of runs that nobody is writing. */
status verify_artifacts(const struct verifying *v, struct error *error)
{
    struct statement *rows;
    status result;
    int64_t count = 0;
    TRY(statement_open(&rows, v->store->database,
                       "SELECT run, path, bytes, digest FROM artifacts JOIN runs USING (run) WHERE status <> 'running'",
                       error));
    for (bool row; (result = statement_step(rows, &row, error)) == OK && row;) {
        if (!verify_wants(v, statement_integer(rows, 0)))
            continue;
        result = check_artifact(v, rows, &count, error);
        if (result != OK)
            break;
    }
    statement_close(rows);
    if (result == OK)
        verify_checked(v, "files", count);
    return result;
}
