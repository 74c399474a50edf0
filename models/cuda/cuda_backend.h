/* The CUDA backend's one door. */
#ifndef MTIL_MODELS_CUDA_CUDA_BACKEND_H
#define MTIL_MODELS_CUDA_CUDA_BACKEND_H

#include "models/backend.h"

/* Opens the current device; see backend_open. ERROR_DEVICE where there is none. */
status cuda_backend_open(struct backend **backend, struct error *error);

#endif
