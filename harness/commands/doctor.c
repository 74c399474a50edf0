/* mtil doctor: how this program was built, what the machine has, which datasets exist. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "core/threads.h"
#include "datasets/dataset.h"
#include "harness/commands/inputs/dataset_choice.h"
#include "harness/commands/output.h"
#include "harness/model/proven.h"
#include "harness/run/program.h"
#include "models/backend.h"

static const struct option options[] = {
    OPTION(TEXT, "data", NULL, "folder to look for datasets in"),
    {0},
};

static void print_row(const struct command_call *call, const char *name, const char *value)
{
    fprintf(call->out, "  %-14s ", name);
    output_words(call, value);
    fputc('\n', call->out);
}

/* Only opening one shows whether it works. */
static void print_backend(const struct command_call *call, const char *row, const char *name, enum precision precision)
{
    SCOPED(backend_close_at) struct backend *backend = NULL;
    struct error error;
    if (backend_open(&backend, &(struct backend_settings){.name = name, .precision = precision}, &error) != OK) {
        print_row(call, row, error.message);
        return;
    }
    print_row(call, row, backend->description);
}

/* What a GPU computes, beside the CPU. */
static void print_proof(const struct command_call *call, size_t gpu, enum precision precision)
{
    const struct backend_settings settings = {.device = gpu, .precision = precision};
    struct error error;
    char name[32];
    snprintf(name, sizeof name, "GPU %zu %s", gpu, precision_name(precision));
    status proven = proven_anew(&settings, NULL, call->log, &error);
    print_row(call, name, proven == OK ? "computes what the CPU does" : error.message);
}

static void print_gpus(const struct command_call *call)
{
    struct gpus gpus;
    struct error none;
    if (backend_gpus(&gpus, &none) != OK)
        return; /* the row of the backend has the reason */
    print_row(call, "GPU driver", gpus.versions);
    for (size_t i = 0; i < gpus.count; i++) {
        const struct gpu *gpu = &gpus.list[i];
        char name[32], value[192];
        snprintf(name, sizeof name, "GPU %zu", i);
        snprintf(value, sizeof value, "%s, %.1f GiB, architecture %d.%d", gpu->name, (double)gpu->memory / (1 << 30),
                 gpu->major, gpu->minor);
        print_row(call, name, value);
        print_proof(call, i, PRECISION_F32);
        print_proof(call, i, PRECISION_BF16);
    }
}

static void print_program(const struct command_call *call)
{
    fprintf(call->out, "program\n");
    print_row(call, "mtil", MTIL_VERSION);
    if (*program_commit() != 0)
        print_row(call, "commit", program_commit());
    print_row(call, "compiler", program_compiler());
#if defined(__SANITIZE_ADDRESS__)
    print_row(call, "sanitizer", "address");
#elif defined(__SANITIZE_THREAD__)
    print_row(call, "sanitizer", "thread");
#endif
    print_backend(call, "cpu", "cpu", PRECISION_F32);
    print_backend(call, "cpu in bf16", "cpu", PRECISION_BF16);
    print_backend(call, "cuda", "cuda", PRECISION_F32);
}

/* __builtin_cpu_supports takes a literal alone, hence the macro. */
static void print_instructions(const struct command_call *call)
{
    SCOPED(text_free) struct text names = {0};
#if defined(__x86_64__)
#define ADD_IF_SUPPORTED(name)                                                                                         \
    if (__builtin_cpu_supports(name))                                                                                  \
    text_add(&names, "%s%s", names.size > 0 ? " " : "", name)
    ADD_IF_SUPPORTED("sse4.2");
    ADD_IF_SUPPORTED("avx");
    ADD_IF_SUPPORTED("avx2");
    ADD_IF_SUPPORTED("fma");
    ADD_IF_SUPPORTED("avx512f");
    ADD_IF_SUPPORTED("avx512bw");
    ADD_IF_SUPPORTED("avx512vnni");
    ADD_IF_SUPPORTED("avx512bf16");
#undef ADD_IF_SUPPORTED
#elif defined(__aarch64__)
    text_add(&names, "neon");
#endif
    print_row(call, "instructions", names.data != NULL ? names.data : "no vector instructions known");
}

static void print_machine(const struct command_call *call)
{
    char value[128];
    fprintf(call->out, "machine\n");
    snprintf(value, sizeof value, "%zu", threads_available());
    print_row(call, "cores", value);
    print_instructions(call);
    double page = (double)sysconf(_SC_PAGESIZE), gigabyte = 1 << 30;
    snprintf(value, sizeof value, "%.1f GiB, %.1f free", page * (double)sysconf(_SC_PHYS_PAGES) / gigabyte,
             page * (double)sysconf(_SC_AVPHYS_PAGES) / gigabyte);
    print_row(call, "memory", value);
    print_gpus(call);
}

static void print_libraries(const struct command_call *call)
{
    struct library library;
    fprintf(call->out, "libraries\n");
    for (size_t i = 0; program_library(i, &library); i++)
        print_row(call, library.name, library.version);
}

static void describe(const struct dataset *dataset, char *value, size_t size)
{
    snprintf(value, size, "%zu classes, %zu training and %zu test images", dataset_classes(dataset),
             dataset_size(dataset, SPLIT_TRAIN), dataset_size(dataset, SPLIT_TEST));
}

/* Opening a dataset reads its lists and looks for its files, so "found" means that a run can use it. */
static void print_dataset(const struct command_call *call, const struct dataset_reader *reader, const char *root)
{
    SCOPED(dataset_close_at) struct dataset *dataset = NULL;
    struct error error;
    if (reader->folders[0] == NULL)
        return;
    if (!dataset_found(reader, root)) {
        print_row(call, reader->name, "-");
        return;
    }
    if (dataset_open(&dataset, reader->name, root, NULL, call->log, &error) != OK) {
        print_row(call, reader->name, error.message);
        return;
    }
    char value[128];
    describe(dataset, value, sizeof value);
    print_row(call, reader->name, value);
}

/* What the reader "folder" makes of a folder of class folders. */
static void print_folder(const struct command_call *call, const char *root, const char *path)
{
    SCOPED(dataset_close_at) struct dataset *dataset = NULL;
    struct error error;
    char value[128];
    struct dataset_choice choice = {.name = "folder", .root = root, .path = path};
    status result = dataset_choice_open(&choice, call->log, &dataset, &error);
    if (result == OK)
        describe(dataset, value, sizeof value);
    print_row(call, path, result == OK ? value : error.message);
}

/* A folder of such folders, as the sessions of CORe50 and the domains of DomainNet are. */
static void print_domains(const struct command_call *call, const char *root, const char *name)
{
    SCOPED(directory_free) struct directory found = {0}, others = {0};
    char value[128];
    OWNED char *path = path_format("%s/%s", root, name);
    if (dataset_find_folders(path, &found, &others, NULL) != OK || found.count == 0)
        return;
    snprintf(value, sizeof value, "%zu folders of class folders, for train and test: %s%s", found.count, found.names[0],
             found.count > 1 ? ", …" : "");
    print_row(call, name, value);
}

static void print_folders(const struct command_call *call, const char *root)
{
    SCOPED(directory_free) struct directory found = {0}, others = {0};
    if (dataset_find_folders(root, &found, &others, NULL) != OK)
        return;
    fputs("folders of images there, for reader: folder\n", call->out);
    for (size_t i = 0; i < found.count; i++)
        print_folder(call, root, found.names[i]);
    for (size_t i = 0; i < others.count; i++)
        print_domains(call, root, others.names[i]);
}

static void print_datasets(const struct command_call *call, const char *root)
{
    size_t count;
    const struct dataset_reader *const *readers = dataset_readers(&count);
    fputs("datasets in ", call->out);
    output_words(call, root);
    fputc('\n', call->out);
    for (size_t i = 0; i < count; i++)
        print_dataset(call, readers[i], root);
    print_folders(call, root);
}

static status run(const struct command_call *call, struct error *error)
{
    const char *root = options_text(call->options, "data");
    if (root != NULL && !file_is_directory(root))
        return error_set(error, ERROR_IO, "%s: expected a folder with datasets, found none", root);
    print_program(call);
    print_machine(call);
    print_libraries(call);
    if (root != NULL)
        print_datasets(call, root);
    return OK;
}

const struct command command_doctor = {
    .name = "doctor",
    .arguments = "",
    .summary = "show what is built in, what the machine has and which datasets exist",
    .example = "  mtil doctor --data data/mini\n",
    .options = options,
    .run = run,
};
