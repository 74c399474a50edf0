#include "models/backend.h"

#include <stddef.h>
#include <string.h>

#include "models/cpu/cpu.h"
#include "models/cuda/cuda_backend.h"

#define OPERATION(name)                                                                                                \
    {                                                                                                                  \
#name, offsetof(struct backend_ops, name)                                                                      \
    }

static const struct {
    const char *name;
    size_t offset;
} operations[] = {
    OPERATION(gemm),
    OPERATION(grouped_gemm),
    OPERATION(layer_norm),
    OPERATION(layer_norm_backward),
    OPERATION(activate),
    OPERATION(activate_backward),
    OPERATION(attention),
    OPERATION(attention_backward),
    OPERATION(patchify),
    OPERATION(assemble_tokens),
    OPERATION(assemble_tokens_backward),
    OPERATION(embed_tokens),
    OPERATION(embed_tokens_backward),
    OPERATION(number_rows),
    OPERATION(gather_rows),
    OPERATION(scatter_rows),
    OPERATION(column_sum),
    OPERATION(blend),
    OPERATION(normalize),
    OPERATION(normalize_backward),
    OPERATION(mean_positions),
    OPERATION(cross_entropy),
    OPERATION(predict),
    OPERATION(squared_error),
    OPERATION(route),
    OPERATION(route_backward),
    OPERATION(dispatch_gather),
    OPERATION(dispatch_combine),
    OPERATION(dispatch_dropout),
    OPERATION(expert_gate_backward),
    OPERATION(adamw),
    OPERATION(arena_create),
    OPERATION(arena_destroy),
    OPERATION(upload),
    OPERATION(download),
    OPERATION(zero),
    OPERATION(copy),
    OPERATION(close),
};

/* A new operation has to be listed above too. */
_Static_assert(sizeof(struct backend_ops) ==
                   sizeof(const char *) + sizeof operations / sizeof *operations * sizeof(void (*)(void)),
               "the list of operations does not cover struct backend_ops");

status backend_check(const struct backend *backend, struct error *error)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        void (*operation)(void);
        memcpy(&operation, (const char *)backend->ops + operations[i].offset, sizeof operation);
        if (operation == NULL)
            return error_set(error, ERROR_ARGUMENT,
                             "backend %s: it lacks the operation %s; use the CPU (run.backend=cpu)", backend->ops->name,
                             operations[i].name);
    }
    return OK;
}

/* The one place that picks a backend. */
static status open_by_name(struct backend **backend, const char *name, size_t threads, struct error *error)
{
    if (strcmp(name, "cpu") == 0 || strcmp(name, "auto") == 0)
        return cpu_backend_open(backend, threads, error);
#ifdef MTIL_CUDA
    if (strcmp(name, "cuda") == 0)
        return cuda_backend_open(backend, error);
#else
    if (strcmp(name, "cuda") == 0)
        return error_set(error, ERROR_ARGUMENT,
                         "backend: this program was built without CUDA; use the CPU (run.backend=cpu)");
#endif
    return error_set(error, ERROR_ARGUMENT, "backend: expected cpu, cuda or auto, found \"%s\"", name);
}

status backend_open(struct backend **backend, const char *name, size_t threads, struct error *error)
{
    struct backend *opened;
    TRY(open_by_name(&opened, name, threads, error));
    status complete = backend_check(opened, error);
    if (complete != OK) {
        backend_close(opened);
        return complete;
    }
    *backend = opened;
    return OK;
}

void backend_close(struct backend *backend)
{
    if (backend != NULL)
        backend->ops->close(backend);
}
