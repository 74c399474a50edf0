/* The backend of a model. A GPU is compared with the CPU before it is trusted (models/proof.h,
 * adapters/proof_step.h), once per program, GPU, precision, driver and libraries; the result is kept in the cache
 * folder (core/seen.h).
 *
 *     struct backend *backend;
 *     TRY(proven_open(&backend, &settings->backend, settings->cache.folder, log, error));
 *     backend_close(backend);
 */
#pragma once

#include "models/backend.h"

/* As backend_open. A GPU that computes other values, or cannot be opened, is ERROR_DEVICE; a GPU without the memory
 * for the comparison is ERROR_MEMORY. Where the name is auto, a warning says why, and the backend is the CPU. folder
 * NULL: the default one. */
status proven_open(struct backend **backend, const struct backend_settings *settings, const char *folder,
                   const struct log *log, struct error *error);

/* Compares the GPU settings->device anew, whatever the stored result. */
status proven_anew(const struct backend_settings *settings, const char *folder, const struct log *log,
                   struct error *error);
