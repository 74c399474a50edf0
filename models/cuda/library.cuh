/* Functions that are looked up at run time, so that the program starts without their libraries. Each is listed once:
 *
 *     #define FUNCTIONS(f) f(ncclGroupStart) f(ncclGroupEnd)
 *     struct library { void *handle; FUNCTIONS(CUDA_FUNCTION) } *library;           // library->ncclGroupStart()
 *     const struct cuda_function wanted[] = {FUNCTIONS(CUDA_WANTED)};
 *     TRY(cuda_library_open(&library->handle, "libnccl.so.2", "NCCL", "use one GPU", wanted, 2, error));
 */
#pragma once

#include <dlfcn.h>
#include <string.h>

#include "models/cuda/cuda.h"

struct cuda_function {
    const char *name;
    void *pointer; /* the address of a pointer to the function */
};
#define CUDA_FUNCTION(function) decltype(&::function) function;
#define CUDA_WANTED(function) {#function, &library->function},

/* find: as dlsym, from a handle. Returns the first function that is missing; NULL: none is. */
static inline const struct cuda_function *cuda_functions_find(const struct cuda_function *wanted, size_t count,
                                                              void *(*find)(void *from, const char *name), void *from)
{
    for (size_t i = 0; i < count; i++) {
        void *found = find(from, wanted[i].name);
        if (found == NULL)
            return &wanted[i];
        memcpy(wanted[i].pointer, &found, sizeof found);
    }
    return NULL;
}

/* The caller closes the handle, also after an error, unless it is NULL. name and otherwise: for messages. */
static inline status cuda_library_open(void **handle, const char *file, const char *name, const char *otherwise,
                                       const struct cuda_function *wanted, size_t count, struct error *error)
{
    *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (*handle == NULL)
        return error_set(error, ERROR_DEVICE, "cuda: %s cannot be opened: %s; put its folder on LD_LIBRARY_PATH, or %s",
                         name, dlerror(), otherwise);
    const struct cuda_function *missing = cuda_functions_find(wanted, count, dlsym, *handle);
    if (missing == NULL)
        return OK;
    return error_set(error, ERROR_DEVICE, "cuda: %s lacks %s; a newer one is needed", name, missing->name);
}
