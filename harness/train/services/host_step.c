#include "harness/train/services/host_step.h"

#include <math.h>
#include <string.h>

void *host_take(struct arena *memory, size_t count, size_t size)
{
    size_t bytes = array_size(count + 1, size);
    return memset(xgiven(arena_take(memory, bytes), bytes), 0, bytes);
}

double host_cross_entropy(double *scores, size_t n, size_t classes, const int32_t *labels, const double *weights)
{
    double loss = 0;
    for (size_t i = 0; i < n; i++) {
        double *row = scores + i * classes, share = (weights != NULL ? weights[i] : 1) / (double)n, highest = row[0],
               sum = 0;
        size_t label = (size_t)labels[i];
        for (size_t c = 1; c < classes; c++)
            highest = row[c] > highest ? row[c] : highest;
        for (size_t c = 0; c < classes; c++)
            sum += exp(row[c] - highest);
        loss += share * (highest + log(sum) - row[label]);
        for (size_t c = 0; c < classes; c++)
            row[c] = share * (exp(row[c] - highest) / sum - (c == label));
    }
    return loss;
}

void host_adam(double *values, size_t n, const double *gradient, double *moments, const struct host_adam *adam,
               size_t step)
{
    static const double beta2 = 0.999, epsilon = 1e-8;
    double at = (double)step, scale1 = 1 - pow(adam->beta1, at + 1), scale2 = 1 - pow(beta2, at + 1), *mean = moments,
           *square = moments + n;
    for (size_t i = 0; i < n; i++) {
        mean[i] = adam->beta1 * mean[i] + (1 - adam->beta1) * gradient[i];
        square[i] = beta2 * square[i] + (1 - beta2) * gradient[i] * gradient[i];
        values[i] = (1 - adam->rate * adam->decay) * values[i] -
                    adam->rate / scale1 * mean[i] / (sqrt(square[i] / scale2) + epsilon);
    }
}

void host_sgd(double *values, size_t n, const double *gradient, double *velocity, double rate, double momentum,
              double decay)
{
    for (size_t i = 0; i < n; i++) {
        velocity[i] = momentum * velocity[i] + gradient[i] + decay * values[i];
        values[i] -= rate * velocity[i];
    }
}
