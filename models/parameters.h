/* A group of tensors: their values and, when they are trained, their gradients and an optimizer's moments, each contiguous.
 *
 *     struct parameters *group;
 *     parameters_create(&group, backend);
 *     size_t proj;                                                     // declare everything first
 *     TRY(parameters_add(group, "visual.proj", 2, (size_t[]){d, embed}, 1, 0, &proj, error));
 *     TRY(parameters_allocate(group, &model_arena, PARAMETERS_FROZEN, error));
 *     struct weight w = parameters_weight(group, proj);  // w.gradient is NULL when frozen
 *     ... backward adds to gradients ...
 *     TRY(parameters_step(group, state, &rule, error));  // and leaves gradients zero
 *
 * A tensor may consist of equal segments along its first axis (the experts of a stack, the tasks of a router), each
 * with an update step count and a flag of its own: a segment is updated only where its flag is set.
 */
#pragma once

#include "models/backend.h"

struct weight {
    float *value, *gradient; /* on the device; gradient NULL: no gradient is computed */
    bool frozen; /* in a group without gradients, which calls renew of struct backend before its values change */
};

struct parameter {
    char *name;
    int rank;
    size_t shape[TENSOR_RANK];
    size_t offset, size; /* in values */
    size_t first_segment, segments;
};

enum parameters_mode {
    PARAMETERS_FROZEN,            /* values only */
    PARAMETERS_TRAINED,           /* values, gradients (zero), moments (zero), step counts (zero) */
    PARAMETERS_TRAINED_ONE_MOMENT /* the same without second moments, for optimizers that have none */
};

struct parameters {
    struct backend *backend;
    size_t count, segments, flags_count;
    size_t values_count; /* with the zeros between tensors that align them */
    struct parameter *list;
    const float *values; /* device [values_count], like the next three; written through parameters_write alone */
    float *gradients, *first_moment, *second_moment; /* second_moment NULL: PARAMETERS_TRAINED_ONE_MOMENT */
    uint64_t *offsets;                               /* device [segments + 1] */
    int32_t *flag, *steps, *changes;                 /* device [segments]; changes: updates ever since */
    int32_t *flags;                                  /* device [flags_count]; all set at first */
    int32_t *host_flag;                              /* host [segments] */
    uint32_t *writes;                                /* host [segments]: calls of parameters_write */
    uint64_t version;                                /* changes whenever values may have changed; not 0 */
};

struct optimizer; /* models/optimizers/optimizer.h */

struct update_rule {
    const struct optimizer *optimizer;                        /* NULL: adamw */
    double beta1, beta2, epsilon, momentum, weight_decay, l2; /* only those that the optimizer uses are read */
    const struct step_guard *guard;                           /* as in struct update */
    bool clear_skipped;
};

void parameters_create(struct parameters **group, struct backend *backend);
void parameters_destroy(
    struct parameters *group); /* frees host memory, before the backend is closed; the arena owns the rest */

/* Declares a tensor and sets *index to its number; segment i is governed by flag first_flag + i. */
status parameters_add(struct parameters *group, const char *name, int rank, const size_t *shape, size_t segments,
                      size_t first_flag, size_t *index, struct error *error);

/* Takes the memory; values are zero. Once per group. */
status parameters_allocate(struct parameters *group, struct arena *arena, enum parameters_mode mode,
                           struct error *error);

size_t parameters_size(const struct parameters *group); /* values of all tensors */
struct weight parameters_weight(const struct parameters *group, size_t index);
const struct parameter *parameters_find(const struct parameters *group, const char *name); /* NULL: absent */

/* Returns values + offset for changing n of them by other means than parameters_step; their segments count as changed. */
float *parameters_write(struct parameters *group, size_t offset, size_t n);
float *parameters_write_all(struct parameters *group);

/* Fills changes [segments] on the host; a segment's number differs from that of an earlier call if the segment was updated
 * or written since. */
status parameters_changes(const struct parameters *group, uint64_t *changes, struct error *error);

/* From now on the flag governs all segments of the tensor. */
status parameters_govern(struct parameters *group, const struct parameter *parameter, size_t flag, struct error *error);

/* Copies one tensor's values from or to the host: [size of the parameter]. */
status parameters_upload(struct parameters *group, const struct parameter *parameter, const float *values,
                         struct error *error);
status parameters_download(const struct parameters *group, const struct parameter *parameter, float *values,
                           struct error *error);
/* Copies all tensors to the host: values [values_count], each tensor at its offset. One that is not finite is an error; path: of the
 * file that they are for. */
status parameters_download_all(const struct parameters *group, float *values, const char *path, struct error *error);

/* One step of the rule's optimizer on every segment whose flag is set; see struct update. */
status parameters_step(struct parameters *group, const struct step_state *state, const struct update_rule *rule,
                       struct error *error);

/* found[0] = 1 where the gradient of a segment whose flag is set is not finite; see struct find_not_finite. */
status parameters_find_not_finite(const struct parameters *group, int32_t *found, struct error *error);

/* Starts a fresh optimizer: moments and step counts become zero. */
status parameters_reset(struct parameters *group, struct error *error);
