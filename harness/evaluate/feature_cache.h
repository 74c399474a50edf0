/* Features that went through adapters, kept for as long as the router and the experts on their way are what they were:
 * what has not changed is not computed again.
 *
 *     TRY(known_create(&known, experiment, error));
 *     TRY(known_refresh(known, error));                         // after training or merging
 *     TRY(known_classes(known, j, router, arena, &classes, error));
 *     size_t missing = known_missing(known, &images, items, n, router, list);       // encode these, then
 *     known_store(known, &images, item, router, chosen, features);
 */
#ifndef MTIL_HARNESS_EVALUATE_KNOWN_H
#define MTIL_HARNESS_EVALUATE_KNOWN_H

#include "adapters/files/identity.h"
#include "harness/run/experiment.h"

/* Of a set of images, each through the router that it took last. Host memory. */
struct known_images {
    size_t n, embed, choices; /* choices: image blocks · K */
    int16_t *router;          /* [n], −1: not computed yet */
    uint64_t *identity;       /* [n] of router and experts when it was computed */
    int32_t *chosen;          /* [n, choices] */
    float *features;          /* [n, embed] */
};

/* Of a task's classes through one router. */
struct known_classes {
    uint64_t identity;
    int32_t *chosen; /* [prompts, text blocks, K] */
    float *features; /* [classes, embed]; NULL: not computed yet */
};

struct known {
    struct experiment *experiment;
    bool keep; /* false: nothing is, and everything is computed again */
    struct adapter_identity identity;
    struct known_classes *classes; /* [tasks, routers] */
    size_t routers;
    size_t images_asked, images_encoded; /* since the beginning */
};

status known_create(struct known **known, struct experiment *experiment, struct error *error);
void known_destroy(struct known *known); /* NULL is allowed */

/* Looks at the adapters as they are now. */
status known_refresh(struct known *known, struct error *error);

status known_images_create(struct known_images *images, const struct known *known, size_t n, struct error *error);
void known_images_free(struct known_images *images);

/* Those of n items whose features through the router have to be computed: list [n]; returns how many. */
size_t known_missing(struct known *known, const struct known_images *images, const uint32_t *items, size_t n,
                     int router, uint32_t *list);

/* Keeps the features of one image; chosen is not read where router is −1. */
void known_store(struct known *known, struct known_images *images, size_t item, int router, const int32_t *chosen,
                 const float *features);

/* Class features of task j through a router (−1: adapters off), [classes, embed] in the arena, computed unless they
 * are known. */
status known_classes(struct known *known, size_t j, int router, struct arena *arena, struct tensor *features,
                     struct error *error);

#endif
