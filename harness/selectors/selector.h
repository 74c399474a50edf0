/* Chooses the router of an image: the task with the smallest error wins (README.md).
 *
 *     TRY(selector_create(&selector, model, data, error));
 *     TRY(selector_train(selector, task, stop, error));                  // after the task
 *     TRY(selector_errors(selector, k, &images, errors, error));         // [n] of task k
 *     selector_choose(selector, errors, n, routers);                     // [n] router or −1
 */
#pragma once

#include "adapters/experts/autoencoder.h"
#include "adapters/files/adapter_metadata.h"
#include "adapters/files/selector_file.h"
#include "harness/heads/model.h"

struct selector {
    const struct selector_kind *kind;
    struct model *model;
    const struct data *data;
    struct selector_settings settings;
    size_t tasks;
    size_t trained;    /* tasks 0 … trained − 1 compete */
    float *thresholds; /* [tasks] */
    enum selector_decision decision;
    size_t decision_batch;
    struct autoencoder **coders; /* [tasks + 1], the last for unrelated images; NULL: the kind has none */
    size_t code;                 /* their hidden units */
    size_t steps;                /* that trained them since the selector was made */
    bool unrelated;              /* the last coder is there, and its errors compete as number `tasks` */
    bool prepared;               /* the kind's `before` is done */
    void *state;                 /* the kind's own */
};

/* The input of a selector: frozen features of all n images on the host, and the images, for kinds that compute features
 * of their own. */
struct selector_images {
    size_t n;
    const float *means, *features; /* [n, image_width], [n, embed]; unnormalised */
    const int32_t *labels;         /* [n] of training images; test images have none */
    const struct dataset *dataset;
    enum split split;
    const uint32_t *items; /* NULL: the first n of the split */
    const struct stop *stop;
};

const struct selector_kind *selector_kind_at(size_t index); /* NULL past the last one */
status selector_kind_find(const struct selector_kind **kind, const char *name, struct error *error);

/* An untrained selector with the settings of the model and the tasks of the data, for a kind that chooses by errors. */
status selector_create(struct selector **selector, struct model *model, const struct data *data, struct error *error);

/* The selector saved with adapters, with their tasks and decision, whatever those of the model are. The metadata of the
 * file must describe one. AlexNet's weights are not in the file; they come from the model's settings. */
status selector_open(struct selector **selector, struct model *model, const struct data *data,
                     const struct safetensors *file, const struct adapter_metadata *metadata, struct error *error);
void selector_destroy(struct selector *selector); /* NULL is allowed */

/* Training images of a task that it learns from, at most. */
size_t selector_most(const struct selector_settings *settings);

/* Learns the task from nine tenths of its training images and sets its threshold by the rest. */
status selector_train(struct selector *selector, const struct task *task, const struct stop *stop, struct error *error);

/* The same from given images: the first `used` of them train, the others set the threshold. */
status selector_fit(struct selector *selector, const struct task *task, const struct selector_images *images,
                    size_t used, struct error *error);

/* Whether the errors of task k may have changed since `trained` tasks were trained. */
bool selector_errors_changed(const struct selector *selector, size_t trained);

/* errors [n] of task k, or of unrelated images (k = tasks). */
status selector_errors(struct selector *selector, size_t k, const struct selector_images *images, float *errors,
                       struct error *error);

/* routers [n] from errors [tasks + 1][n], per image or per consecutive decision_batch images. */
void selector_choose(const struct selector *selector, const float *const *errors, size_t n, int16_t *routers);
size_t selector_together(const struct selector *selector); /* images per decision: 1 or decision_batch */

/* Whether the choice needs the errors of number k. */
bool selector_wants(const struct selector *selector, size_t k);

/* least [n]: the smallest error of each image, or of the mean of its decision batch; infinity if none is finite. */
void selector_least_errors(const struct selector *selector, const float *const *errors, size_t n, float *least);

/* Sets the threshold of task k by the settings: a fixed one, or the quantile of the errors of its held-out images. */
status selector_set_threshold(struct selector *selector, size_t k, const struct selector_images *held_out,
                              struct error *error);
