#include "harness/model/proven.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/proof_step.h"
#include "core/file.h"
#include "core/scope.h"
#include "core/seen.h"
#include "datasets/cache/cache_file.h"
#include "harness/commit.h" /* made by the build */
#include "models/proof.h"

/* On a backend of its own, whose memory is free afterwards. */
static status compare(const struct backend_settings *settings, struct error *error)
{
    SCOPED(backend_close_at) struct backend *cpu = NULL, *device = NULL;
    TRY(backend_open(&cpu, &(struct backend_settings){.name = "cpu", .threads = settings->threads}, error));
    TRY(backend_open(&device, settings, error));
    TRY(proof_of_operations(cpu, device, error));
    return proof_of_step(cpu, device, error);
}

/* Programs of several places have a verdict each. */
struct program {
    char path[4096];
    struct file_stamp stamp;
};

/* What passed, as a file that was seen: the program's own, which stands for the build, since a commit may be built in more than one
 * way and changed sources have none. */
static status open_passed(struct seen **seen, struct program *program, const struct backend *backend, size_t device,
                          const char *folder, struct error *error)
{
    struct gpus gpus;
    OWNED char *usual = folder == NULL ? cache_folder_default() : NULL;
    char root[200], version[320];
    *seen = NULL;
    ssize_t length = readlink("/proc/self/exe", program->path, sizeof program->path - 1);
    program->path[length > 0 ? length : 0] = 0;
    TRY(file_stamp_read(&program->stamp, "/proc/self/exe", error));
    TRY(backend_gpus(&gpus, error));
    const struct gpu *gpu = &gpus.list[device];
    snprintf(root, sizeof root, "%s %s %s", gpu->name, gpu->uuid, precision_name(backend->precision));
    snprintf(version, sizeof version, "%s %s", MTIL_COMMIT, backend->arithmetic);
    return seen_open(seen, folder != NULL ? folder : usual,
                     &(struct seen_place){.kind = "GPU", .root = root, .version = version}, error);
}

/* One that failed is compared again by the next run, since it may have been another program's fault. */
static status prove(const struct backend *backend, const struct backend_settings *settings, bool anew,
                    const char *folder, const struct log *log, struct error *error)
{
    const char *precision = precision_name(settings->precision), passed = 1;
    struct program program;
    struct error unkept;
    struct seen *seen;
    char found;
    status kept = open_passed(&seen, &program, backend, settings->device, folder, &unkept);
    bool known = !anew && kept == OK && seen_find(seen, program.path, &program.stamp, &found, sizeof found);
    if (!known)
        log_info(log, "GPU %zu in %s: compared with the CPU, once for this program", settings->device, precision);
    status result = known ? OK : compare(settings, error);
    if (result == OK && !known) {
        NEXT(kept,
             seen_write(seen, &(struct seen_record){program.path, program.stamp, &passed, sizeof passed}, 1, &unkept));
        if (kept != OK)
            log_warn(log, "the next run compares GPU %zu with the CPU again: %s", settings->device, unkept.message);
    }
    seen_close(seen);
    const char *what = result == ERROR_DEVICE   ? "fails its proof"
                       : result == ERROR_MEMORY ? "has too little memory left for its proof"
                                                : NULL;
    return what != NULL
               ? error_context(error,
                               "cuda: GPU %zu %s in %s, so use another (run.device) or the CPU (run.backend=cpu)",
                               settings->device, what, precision)
               : result;
}

static status open_proven(struct backend **backend, const struct backend_settings *settings, bool anew,
                          const char *folder, const struct log *log, struct error *error)
{
    struct backend_settings cuda = *settings;
    cuda.name = "cuda";
    TRY(backend_open(backend, &cuda, error));
    status result = prove(*backend, &cuda, anew, folder, log, error);
    if (result != OK)
        backend_close(*backend);
    return result;
}

status proven_anew(const struct backend_settings *settings, const char *folder, const struct log *log,
                   struct error *error)
{
    struct backend *backend;
    TRY(open_proven(&backend, settings, true, folder, log, error));
    backend_close(backend);
    return OK;
}

status proven_open(struct backend **backend, const struct backend_settings *settings, const char *folder,
                   const struct log *log, struct error *error)
{
    bool is_auto = strcmp(settings->name, "auto") == 0;
    struct backend_settings cpu = *settings;
    struct gpus gpus;
    if (!is_auto && strcmp(settings->name, "cuda") != 0)
        return backend_open(backend, settings, error);
    status result = is_auto ? backend_gpus(&gpus, error) : OK;
    NEXT(result, open_proven(backend, settings, false, folder, log, error));
    if (!is_auto || (result != ERROR_DEVICE && result != ERROR_MEMORY))
        return result;
    if (gpus.driver)
        log_warn(log, "run.backend is auto, and the CPU computes: %s", error->message);
    cpu.name = "cpu";
    return backend_open(backend, &cpu, error);
}
