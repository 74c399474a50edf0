/* The public functions of the CUDA backend. */
#pragma once

#include "models/backend.h"

/* See backend_open and backend_gpus. */
status cuda_backend_open(struct backend **backend, const struct backend_settings *settings, struct error *error);
status cuda_gpus(struct gpus *gpus, struct error *error);

/* For tests/bench/products, which compares the library's algorithms: from now on, products use its answer number `answer`
 * to their shape, the best first. Training uses answer 0. A product whose shape has no such answer fails. */
enum { CUDA_PRODUCT_ANSWERS = 16 };
void cuda_products_use(struct backend *backend, int answer);

/* The algorithm of the last product, as the library's attributes name it. */
void cuda_products_describe(struct backend *backend, char *text, size_t size);
