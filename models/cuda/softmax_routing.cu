/* Softmax top-k with capacity, and random partitions. */
#include "models/cuda/cuda.h"

#define MISSING(operation)                                                                                             \
    status cuda_##operation(struct backend *backend, const struct operation *o, struct error *error)                   \
    {                                                                                                                  \
        (void)backend;                                                                                                 \
        (void)o;                                                                                                       \
        return error_set(error, ERROR_DEVICE, #operation " runs on the CPU alone; set the backend to cpu");            \
    }
MISSING(route_softmax)
MISSING(route_softmax_backward)
MISSING(balance_softmax)
MISSING(partition)
