/* The common part of selectors by prototypes: some points per task in the space of CLIP's image features, and the
 * distance of an image to the nearest point. Images are compared on the unit sphere; with a whitening, x becomes W (x −
 * mean) first.
 *
 *     error(x) = scale · min over the task's points p of ‖x − p‖²
 */
#pragma once

#include "harness/selectors/selector.h"

/* Host memory; begins the state of a selector of prototypes. */
struct prototypes {
    size_t width, tasks;
    size_t *counts; /* [tasks]; 0: not learned yet */
    float **points; /* [tasks] [counts, width], whitened */
    bool whitens;
    float *whitening, *mean; /* W [width, width], mean [width]; NULL before the first task, and unless it whitens */
    double scale;
};

void prototypes_open(struct prototypes *prototypes, const struct selector *selector, bool whitens);
void prototypes_close(struct prototypes *prototypes); /* of zeros is allowed */

/* Allocates memory for the points of task k and frees the previous ones. */
void prototypes_take(struct prototypes *prototypes, size_t k, size_t count);

/* out [n, width] = rows / ‖row‖ */
void prototypes_normalise(const float *rows, size_t n, size_t width, float *out);

/* Functions of struct selector_kind for kinds that need only points. */
status prototypes_errors(struct selector *selector, size_t k, const struct selector_images *images, float *errors,
                         struct error *error);
status prototypes_file(const struct selector *selector, const struct selector_arrays *arrays, struct error *error);

/* Rows [counts[k], width] of every task so far, "selector.K.NAME", with their counts, "selector.NAME"; takes memory when
 * it restores. */
struct kept_rows {
    const char *name;
    size_t width;
    size_t *counts; /* [tasks] */
    float **rows;   /* [tasks] */
};
status prototypes_keep_rows(const struct kept_rows *rows, const struct serializer *serializer, size_t trained,
                            struct error *error);

/* The same arrays in a file of adapters, without the counts. expected: rows of each task; 0: as many as there are, at least
 * one. */
status prototypes_file_rows(const struct kept_rows *rows, const struct selector_arrays *arrays, size_t trained,
                            size_t expected, struct error *error);

struct kept_rows prototypes_rows(const struct prototypes *prototypes); /* their points */
