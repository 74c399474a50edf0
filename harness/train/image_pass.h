/* Passes images through a model in inference, batch by batch. Full batches are recorded operations (struct repeated), and the results
 * of a batch come to the host while the next one is computed.
 *
 *     struct image_pass pass = {.model = model, .data = data, .images = &loader_settings, .count = n, .bytes = bytes, .name = "aircraft",
 *                               .encode = encode, .keep = keep, .context = &x};
 *     TRY(image_pass_run(&pass, error));
 *
 * struct repeated is for operations that are the same for all batches of one size. Those of the largest size seen are
 * recorded the second time and replayed from then on; other batches, and all on backends that cannot record, run
 * plainly.
 *
 *     struct repeated step = {.backend = backend, .log = log, .name = name, .what = "iterations", .body = compute, .context = &x};
 *     for (each batch)
 *         TRY(repeated_run(&step, batch.total, error));
 *     repeated_close(&step);
 *
 * frozen_features decodes images and computes their features with the frozen image tower:
 *
 *     TRY(frozen_features(model, data, dataset, SPLIT_TRAIN, items, n, means, NULL, stop, error));
 *
 * For methods that learn classes on features of a frozen image tower, struct frozen_rows is a pass over a task's
 * training images. Classes have numbers among those of all tasks, one task after another.
 *
 *     struct frozen_rows rows;
 *     TRY(frozen_rows_read(&rows, run, task, error));                        // end_task
 *     frozen_rows_free(&rows);
 */
#pragma once

#include "core/rng.h"
#include "core/status.h"
#include "harness/model/model.h"
#include "harness/scenario/data.h"
#include "harness/train/batches.h"
#include "harness/train/method.h"
#include "models/backend.h"

struct repeated {
    struct backend *backend;
    const struct log *log;
    const char *name, *what; /* for the warning that they cannot be recorded: "aircraft", "iterations" */
    recorded_body body;      /* at the same addresses for batches of one size (backend.h, record) */
    void *context;
    bool plainly; /* nothing is recorded (any more) */
    struct recording recording;
    size_t largest, recorded; /* batches; 0: none */
};

status repeated_run(struct repeated *repeated, size_t batch, struct error *error);
void repeated_close(struct repeated *repeated);

/* Tensors of a batch in the step's arena, which come to the host one behind the other. */
enum { IMAGE_RESULTS = 3 };
struct image_results {
    size_t count;
    struct tensor list[IMAGE_RESULTS];
};

struct image_pass {
    struct model *model;
    const struct data *data;
    const struct loader_settings *images; /* in order */
    size_t count, bytes;                  /* of the images; of the results of one, at most */
    const char *name;                     /* of the task, for messages */
    const struct stop *stop;              /* polled before every batch; NULL: never */
    bool plainly;                         /* encode also works on the host, so it is not recorded */
    /* The operations of a batch, the same ones for batches of one size. */
    status (*encode)(void *context, const struct batch *batch, struct image_results *results, struct error *error);
    /* The results of `count` images from the first-th on, which are valid during the call. */
    status (*keep)(void *context, size_t first, size_t count, const void *results, struct error *error);
    void *context;
};

status image_pass_run(const struct image_pass *pass, struct error *error);

/* Computes for n items of a split (NULL: all), on the host: means [n, image_width] over the patches and
 * features [n, embed], not normalised, each unless NULL. */
status frozen_features(struct model *model, const struct data *data, const struct dataset *dataset, enum split split,
                       const uint32_t *items, size_t n, float *means, float *features, const struct stop *stop,
                       struct error *error);

struct frozen_rows {
    size_t n, width, first, classes; /* the task's first class; classes of all tasks so far, with this one */
    float *features;                 /* [n, width], in the evaluation transform, not normalised */
    int32_t *labels;                 /* [n] */
};
status frozen_rows_read(struct frozen_rows *rows, const struct method_run *run, const struct task *task,
                        struct error *error);
/* Appends the same images with left and right exchanged. */
status frozen_rows_mirror(struct frozen_rows *rows, const struct method_run *run, const struct task *task,
                          struct error *error);
void frozen_rows_shuffle(struct frozen_rows *rows, struct rng rng);
/* features: those of a class's images, in order; returns their number. */
size_t frozen_rows_of_class(const struct frozen_rows *rows, size_t class, float *features);
/* out [n, width]: features in double precision, as they are or as unit vectors */
void frozen_rows_widen(const float *features, size_t n, size_t width, bool unit, double *out);
void frozen_rows_free(struct frozen_rows *rows); /* after a failure, too */

/* Number of the class of the first column that the hook `scores` gets: 0, or with evaluation.label_space: task the task's
 * first. */
size_t frozen_classes_column(const struct method_run *run, const struct task *task);
size_t frozen_classes_images(const struct data *data); /* training images of all tasks */
/* The hook `check` of a method that learns the classes of a task in this task alone. */
status frozen_classes_once(const struct settings *settings, struct error *error);
/* Of a row of that hook, the first `known` columns are learned classes. Where one of them has the highest score, they compete alone, by
 * own [known]. */
void frozen_classes_decide(float *row, size_t columns, size_t known, const double *own);
