#include "models/backend.h"

#include <string.h>

#include "models/cpu/cpu.h"

/* The one place that picks a backend. */
status backend_open(struct backend **backend, const char *name, size_t threads, struct error *error)
{
    if (strcmp(name, "cpu") == 0 || strcmp(name, "auto") == 0)
        return cpu_backend_open(backend, threads, error);
    if (strcmp(name, "cuda") == 0)
        return error_set(error, ERROR_ARGUMENT, "backend: this program was built without CUDA; use --backend cpu");
    return error_set(error, ERROR_ARGUMENT, "backend: expected cpu, cuda or auto, found \"%s\"", name);
}

void backend_close(struct backend *backend)
{
    if (backend != NULL)
        backend->ops->close(backend);
}
