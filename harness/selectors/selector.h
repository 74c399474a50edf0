/* Chooses the router of an image by one autoencoder per task on the mean patch features of the frozen tower
 * (README.md).
 *
 *     TRY(selector_create(&selector, experiment, error));
 *     TRY(selector_train(selector, task, error));                        // after the task
 *     TRY(selector_errors(selector, k, features, n, errors, error));      // [n] of autoencoder k
 *     selector_choose(selector, errors, n, routers);                      // [n] router or −1
 */
#ifndef MTIL_HARNESS_SELECTORS_SELECTOR_H
#define MTIL_HARNESS_SELECTORS_SELECTOR_H

#include "adapters/experts/autoencoder.h"
#include "adapters/files/adapter_card.h"
#include "harness/run/experiment.h"

struct selector {
    struct experiment *experiment;
    size_t tasks;
    size_t trained;              /* autoencoders 0 … trained − 1 compete */
    struct autoencoder **coders; /* [tasks] */
    float *thresholds;           /* [tasks] */
    enum selector_decision decision;
    size_t decision_batch;
};

/* An untrained selector, with the experiment's tasks and settings. */
status selector_create(struct selector **selector, struct experiment *experiment, struct error *error);

/* The selector saved with adapters: with their tasks and decision, whatever the experiment's are. The card of the
 * file must have one. */
status selector_open(struct selector **selector, struct experiment *experiment, const struct safetensors *file,
                     const struct adapter_card *card, struct error *error);
void selector_destroy(struct selector *selector); /* NULL is allowed */

/* Trains the task's autoencoder on nine tenths of its training images and sets the threshold by the rest. */
status selector_train(struct selector *selector, const struct task *task, const struct stop *stop, struct error *error);

/* The same from features [used + held_out, width] on the host: the first `used` rows train, the others set the
 * threshold. */
status selector_fit(struct selector *selector, const struct task *task, const float *features, size_t used,
                    size_t held_out, struct error *error);

/* errors [n] of autoencoder k, from features [n, width] on the host. */
status selector_errors(struct selector *selector, size_t k, const float *features, size_t n, float *errors,
                       struct error *error);

/* routers [n] from errors [trained][n], per image or per consecutive decision_batch images. */
void selector_choose(const struct selector *selector, const float *const *errors, size_t n, int16_t *routers);
size_t selector_together(const struct selector *selector); /* images per decision: 1 or decision_batch */

/* least [n]: the smallest error of each image, or of the mean of its decision batch; infinity if no autoencoder gave
 * a finite error. */
void selector_least_errors(const struct selector *selector, const float *const *errors, size_t n, float *least);

/* Frozen features of n items of a split (NULL: all), decoded on the way: means [n, image_width] and, unless NULL,
 * features [n, embed], unnormalised, on the host. */
status frozen_features(struct experiment *experiment, const struct dataset *dataset, enum split split,
                       const uint32_t *items, size_t n, float *means, float *features, const struct stop *stop,
                       struct error *error);

#endif
