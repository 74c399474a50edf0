/* The selectors: one file in this folder and one line here each, in the order of lists. */
#pragma once

#include "harness/selectors/selector.h"
#include "harness/selectors/selector_options.h"
#include "harness/train/serializer.h"

/* SELECTORS in selector_options.h */
#define DECLARE(name) extern const struct selector_kind selector_##name;
SELECTORS(DECLARE)
#undef DECLARE

/* Where the router of an image comes from. */
enum selector_route {
    ROUTE_BY_ERRORS, /* of the task whose error is smallest, if it is within the threshold */
    ROUTE_GIVEN,     /* of the image's own task: the data tells */
    ROUTE_ONE        /* there is one router for all tasks */
};

/* Frozen features that it reads. */
enum selector_features { FEATURES_NONE, FEATURES_PATCHES, FEATURES_IMAGE, FEATURES_PIXELS };

/* A kind of selector. With ROUTE_BY_ERRORS all functions are there unless NULL is explained, otherwise none. */
struct selector_kind {
    const char *name, *source; /* source: where it is published, or what it is */
    const char *formula;       /* of an image's error, or of the router, in one line */
    enum selector_route route;
    enum selector_features features;
    bool shared;           /* a new task changes the errors of the earlier ones, too */
    const char *threshold; /* the default of selector.threshold; NULL: 0, the quantile */
    const char *reads;     /* "code|batch": its own keys of section selector; NULL: none */

    /* Training images of a task that it learns from, at most; the held-out tenth is not among them. NULL: all. */
    size_t (*most)(const struct selector_settings *settings);

    /* State of selector->tasks tasks. close: also after a failure of open. */
    status (*open)(struct selector *selector, enum parameters_mode mode, struct error *error);
    void (*close)(struct selector *selector);

    /* Before the first task, and after any one whose selector was not restored; NULL: nothing to do. */
    status (*before)(struct selector *selector, struct error *error);
    status (*fit)(struct selector *selector, const struct task *task, const struct selector_images *images, size_t used,
                  struct error *error);
    status (*errors)(struct selector *selector, size_t k, const struct selector_images *images, float *errors,
                     struct error *error);

    /* The weight of what prefixes add to an image with that error for its router, and to its class prompts the mean over the
     * images of a test set with one router. NULL: 1. */
    float (*weight)(const struct selector *selector, float error);

    /* The state after `trained` tasks: in a resume file, and in a file of adapters, whose arrays are checked before
     * they are used. */
    status (*keep)(struct selector *selector, const struct serializer *serializer, size_t trained, struct error *error);
    status (*write)(const struct selector *selector, struct selector_tensors *tensors, struct error *error);
    status (*read)(struct selector *selector, const struct safetensors *file, struct error *error);
};
