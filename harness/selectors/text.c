/* Class names: the frozen text features of a task's classes are its prototypes, and the error is 1 − the cosine to the
 * nearest one. Nothing is trained; the held-out images set the threshold.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/model/class_features.h"
#include "harness/selectors/prototypes.h"

static size_t most(const struct selector_settings *settings)
{
    return 0;
}

static status open_text(struct selector *selector, enum parameters_mode mode, struct error *error)
{
    struct prototypes *p = xcalloc(1, sizeof *p);
    selector->state = p;
    prototypes_open(p, selector, false);
    p->scale = 0.5; /* ‖x − p‖² / 2 = 1 − x · p on the sphere */
    return OK;
}

static void close_text(struct selector *selector)
{
    if (selector->state != NULL)
        prototypes_close(selector->state);
    free(selector->state);
}

static status fit(struct selector *selector, const struct task *task, const struct selector_images *images, size_t used,
                  struct error *error)
{
    struct prototypes *p = selector->state;
    struct selector_images held_out = *images;
    OWNED float *features = NULL;
    TRY(class_features_host(selector->model, task, &features, error));
    prototypes_take(p, task->index, dataset_classes(task->dataset));
    memcpy(p->points[task->index], features, p->counts[task->index] * p->width * sizeof *features);
    held_out.n -= used;
    held_out.features = images->features + used * p->width;
    return selector_set_threshold(selector, task->index, &held_out, error);
}

static status keep(struct selector *selector, const struct serializer *serializer, size_t trained, struct error *error)
{
    const struct kept_rows rows = prototypes_rows(selector->state);
    return prototypes_keep_rows(&rows, serializer, trained, error);
}

const struct selector_kind selector_text = {.name = "text",
                                            .source = "cosine to the nearest class name (CLIP, arXiv 2103.00020)",
                                            .formula = "error = 1 - max over classes c of cos(image, text_c)",
                                            .route = ROUTE_BY_ERRORS,
                                            .features = FEATURES_IMAGE,
                                            .most = most,
                                            .open = open_text,
                                            .close = close_text,
                                            .fit = fit,
                                            .errors = prototypes_errors,
                                            .keep = keep,
                                            .file = prototypes_file};
