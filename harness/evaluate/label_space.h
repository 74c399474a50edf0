/* The classes that a test image is compared with (evaluation.label_space): the classes of its own task; in X-TAIL, of
 * all tasks, concatenated; in class-incremental learning, of the tasks trained so far; in open-domain learning, of the tasks
 * trained so far if its own is one of them, and otherwise of its own. A name that two tasks share is two classes.
 *
 *     struct label_space space = {.cache = cache, .seen = tasks};
 *     TRY(label_space_features(&space, j, router, &model->task_memory, &classes, error));      // [classes, embed]
 *     label_space_refresh(&space);                                                      // the model has changed, or is closed
 *
 * Task j's class c is row data->tasks[j].first_class + c.
 *
 * A feature cache keeps features computed through adapters, valid until the router or one of the experts they passed
 * through changes:
 *
 *     struct feature_cache *cache = feature_cache_create(model, data);
 *     TRY(feature_cache_refresh(cache, error));                         // after training or merging
 *     TRY(feature_cache_classes(cache, j, router, arena, &classes, error));
 *     size_t missing = feature_cache_missing(cache, &images, items, n, router, list);       // encode these, then
 *     feature_cache_store(cache, &images, item, router, chosen, gates, features);
 */
#pragma once

#include "adapters/adapter.h"
#include "harness/model/model.h"

/* The features of a set of images, each through its last router. Host memory. */
struct cached_images {
    size_t n, embed, choices; /* choices: image blocks · K */
    int16_t *router;          /* [n], −1: not computed yet; NULL: nothing is cached */
    uint64_t *identity;       /* [n], of the router and experts that computed it */
    int32_t *chosen;          /* [n, choices], only of images with a router */
    float *gates;             /* likewise */
    float *features;          /* [n, embed] */
};

/* The features of a task's classes through one router. */
struct cached_classes {
    uint64_t identity;
    int32_t *chosen; /* [prompts, text blocks, K] */
    float *features; /* [classes, embed]; NULL: not computed yet */
};

struct feature_cache {
    struct model *model;
    const struct data *data;
    bool keep; /* false: nothing is cached */
    struct adapter_identity identity;
    struct cached_classes *classes; /* [tasks, routers] */
    size_t routers;
    size_t images_asked, images_encoded; /* since creation */
    double encoding;                     /* seconds that the latter took, with reading them */
};

struct feature_cache *feature_cache_create(struct model *model, const struct data *data);
void feature_cache_destroy(struct feature_cache *cache); /* NULL is allowed */

/* Reads the current identities of the adapters. To be called after training or merging. */
status feature_cache_refresh(struct feature_cache *cache, struct error *error);

struct cached_images cached_images_create(const struct feature_cache *cache, size_t n);
void cached_images_free(struct cached_images *images);

/* Writes the items whose features through the router must be computed into list [n] and returns their number. */
size_t feature_cache_missing(struct feature_cache *cache, const struct cached_images *images, const uint32_t *items,
                             size_t n, int router, uint32_t *list);

/* Stores the features of one image; chosen and gates are not read when router is −1. */
void feature_cache_store(struct feature_cache *cache, struct cached_images *images, size_t item, int router,
                         const int32_t *chosen, const float *gates, const float *features);

/* Class features of task j through a router (−1: adapters off), [classes, embed] in the arena, computed unless
 * cached. */
status feature_cache_classes(struct feature_cache *cache, size_t j, int router, struct arena *arena,
                             struct tensor *features, struct error *error);

struct label_space {
    struct feature_cache *cache;
    size_t seen;  /* with label_space seen and open: the classes of the first `seen` tasks compete */
    float *joint; /* [classes of joint_tasks tasks, embed] without adapters, until the model changes; NULL: none */
    size_t joint_tasks;
};

/* Rows of class features. */
struct class_range {
    size_t first, count;
};

/* Whether the classes that compete change with the tasks that are trained. */
bool label_space_grows(enum label_space_kind kind);

/* The part of the `rows` class features that an image of task j is compared with: all of them, or with `open` those
 * of its own task where that is not trained yet. */
struct class_range label_space_range(const struct label_space *space, size_t j, size_t rows);

/* Class features with a router (−1: adapters off) in the arena, for images of task j. */
status label_space_features(struct label_space *space, size_t j, int router, struct arena *arena,
                            struct tensor *features, struct error *error);

/* The features of all tasks' classes, whatever evaluation.label_space is: [all classes, embed]. */
status label_space_all(struct label_space *space, int router, struct arena *arena, struct tensor *features,
                       struct error *error);
void label_space_refresh(struct label_space *space); /* frees the features that it keeps */
