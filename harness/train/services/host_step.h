/* Steps of training in double precision on the host, for methods that learn from features of a frozen tower:
 *
 *     double loss = host_cross_entropy(scores, n, classes, labels, NULL);       // scores become their gradient
 *     host_adam(values, n, gradient, moments, &(struct host_adam){.rate = 1e-3, .beta1 = 0.9}, step);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/alloc.h"

/* Zeros in an arena that lives as long as the training of a task. */
void *host_take(struct arena *memory, size_t count, size_t size);

/* mean over rows of weights (NULL: 1) · cross-entropy; scores [n, classes] become the gradient in them. */
double host_cross_entropy(double *scores, size_t n, size_t classes, const int32_t *labels, const double *weights);

/* SGD with momentum, weight decay in the gradient; velocity [n], zeros before the first step. */
void host_sgd(double *values, size_t n, const double *gradient, double *velocity, double rate, double momentum,
              double decay);

/* AdamW of this rate and weight decay; beta2 is 0.999, epsilon 1e-8. */
struct host_adam {
    double rate, decay, beta1;
};
/* Step `step`, from 0, on n values; moments: 2 n, zeros before step 0. */
void host_adam(double *values, size_t n, const double *gradient, double *moments, const struct host_adam *adam,
               size_t step);
