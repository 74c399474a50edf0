/* The public functions of the CUDA backend. */
#pragma once

#include "models/backend.h"

/* See backend_open and backend_gpus. */
status cuda_backend_open(struct backend **backend, const struct backend_settings *settings, struct error *error);
status cuda_gpus(struct gpus *gpus, struct error *error);
