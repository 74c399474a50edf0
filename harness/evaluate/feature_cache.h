/* Features computed through adapters, valid until the router or one of the experts they passed through changes.
 *
 *     struct feature_cache *cache = feature_cache_create(model, data);
 *     TRY(feature_cache_refresh(cache, error));                         // after training or merging
 *     TRY(feature_cache_classes(cache, j, router, arena, &classes, error));
 *     size_t missing = feature_cache_missing(cache, &images, items, n, router, list);       // encode these, then
 *     feature_cache_store(cache, &images, item, router, chosen, gates, features);
 */
#pragma once

#include "adapters/identity.h"
#include "harness/heads/model.h"

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
