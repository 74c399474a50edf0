/* Chooses the router of an image: the task with the smallest error wins (README.md).
 *
 *     TRY(selector_create(&selector, model, data, error));
 *     TRY(selector_train(selector, task, stop, error));                  // after the task
 *     TRY(selector_errors(selector, k, &images, errors, error));         // [n] of task k
 *     selector_choose(selector, errors, n, routers);                     // [n] router or −1
 */
#pragma once

#include "adapters/files/adapter_metadata.h"
#include "adapters/files/selector_file.h"
#include "core/scope.h"
#include "harness/config/settings.h"
#include "harness/model/model.h"
#include "harness/train/serializer.h"

/* The selectors, in the order of lists. A new one is a file in this folder and a name here. */
#define SELECTORS(X) X(clip) X(alexnet) X(gaussian) X(task_gaussian) X(text) X(oracle) X(none)

#define DECLARE(name) extern const struct selector_kind selector_##name;
SELECTORS(DECLARE)
#undef DECLARE

extern const struct option selector_options[];
struct selector_settings selector_settings_of(const struct options *options);

/* The default that a key has with this kind; NULL: the key's own. For suite_section.preset. */
const char *selector_preset(const char *kind, const char *section, const char *key);

/* ERROR_ARGUMENT where a value that the kind needs is missing, or a value is given that it does not use. */
status selector_settings_check(const struct selector_settings *settings, struct error *error);

/* ERROR_IO where a file that the kind needs is missing; the message says where to get it. */
status selector_settings_look(const struct selector_settings *settings, struct error *error);

/* How the router of an image is found. */
enum selector_route {
    ROUTE_BY_ERRORS, /* of the task whose error is smallest, if it is within the threshold */
    ROUTE_GIVEN,     /* of the image's own task: the data tells */
    ROUTE_ONE        /* there is one router for all tasks */
};

/* Frozen features that it reads. */
enum selector_features { FEATURES_NONE, FEATURES_PATCHES, FEATURES_IMAGE, FEATURES_PIXELS };

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

/* A kind of selector. With ROUTE_BY_ERRORS all functions are there unless NULL is explained, otherwise none. */
struct selector_kind {
    const char *name, *source; /* source: where it is published, or what it is */
    const char *formula;       /* of an image's error, or of the router, in one line */
    enum selector_route route;
    enum selector_features features;
    bool shared;           /* a new task changes the errors of the earlier ones, too */
    const char *threshold; /* the default of selector.threshold; NULL: 0, the quantile */

    /* Training images of a task that it learns from, at most; the held-out tenth is not among them. NULL: all. */
    size_t (*most)(const struct selector_settings *settings);

    /* State of selector->tasks tasks. close: also after a failure of open. */
    status (*open)(struct selector *selector, enum parameters_mode mode, struct error *error);
    void (*close)(struct selector *selector);

    /* Called before the first task, and after any one whose selector was not restored; NULL: nothing to do. */
    status (*before)(struct selector *selector, struct error *error);
    status (*fit)(struct selector *selector, const struct task *task, const struct selector_images *images, size_t used,
                  struct error *error);
    status (*errors)(struct selector *selector, size_t k, const struct selector_images *images, float *errors,
                     struct error *error);

    /* The weight of the prefixes' addition to an image with that error for its router; class prompts have the mean
     * weight of the images of a test set with one router. NULL: 1. */
    float (*weight)(const struct selector *selector, float error);

    /* The state after `trained` tasks: in a resume file, and in a file of adapters, whose arrays are checked before
     * they are used. */
    status (*keep)(struct selector *selector, const struct serializer *serializer, size_t trained, struct error *error);
    status (*file)(const struct selector *selector, const struct selector_arrays *arrays, struct error *error);
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
SCOPED_POINTER(struct selector, selector_destroy)

/* Inputs of an autoencoder, for a kind that has some. */
size_t selector_coder_width(const struct selector_kind *kind, const struct model *model);

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
