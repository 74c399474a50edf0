/* The public functions of the CUDA backend. */
#ifndef MTIL_MODELS_CUDA_CUDA_BACKEND_H
#define MTIL_MODELS_CUDA_CUDA_BACKEND_H

#include "models/backend.h"

/* See backend_open and backend_gpus. */
status cuda_backend_open(struct backend **backend, const struct backend_settings *settings, struct error *error);
status cuda_gpus(struct gpus *gpus, struct error *error);

#endif
