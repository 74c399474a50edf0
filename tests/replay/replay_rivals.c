/* Replays folders in the format of fixtures/rivals with the code that the methods run, and compares every number.
 *
 *     build/tests/replay_rivals [--backend cpu|cuda|auto] FOLDER…
 *
 * What a folder holds is told by the keys of its config.json; one without a config.json is taken as a folder of such folders.
 * Prints a line per quantity with the largest deviation and its tolerance; exits with 0 only when all hold, with 77 when a folder
 * is absent. */
#include "tests/replay/replay_rivals.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

static const struct kind {
    const char *key; /* only this kind of config.json has it */
    status (*replay)(struct rival_fixture *fixture, struct error *error);
} kinds[] = {{"tensors", replay_condu}, {"weight_share", replay_keeplora}, {"temperature", replay_moram}};

status rival_tensor(const struct rival_fixture *fixture, int rank, const struct safetensor **tensor,
                    struct error *error, const char *name, ...)
{
    char text[96];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(text, sizeof text, name, arguments);
    va_end(arguments);
    *tensor = safetensors_find(fixture->data, text);
    if (*tensor == NULL || (*tensor)->type != SAFETENSOR_F32 || (*tensor)->rank != rank)
        return error_set(error, ERROR_FORMAT, "%s: expected %s, floats of %d dimensions, found %s",
                         safetensors_path(fixture->data), text, rank, *tensor == NULL ? "none" : "others");
    return safetensors_expect_finite(fixture->data, text, (*tensor)->data, safetensor_elements(*tensor), error);
}

status rival_number(const struct rival_fixture *fixture, const char *key, double *number, struct error *error)
{
    const json_t *value = json_object_get(fixture->config, key);
    if (!json_is_number(value))
        return error_set(error, ERROR_FORMAT, "%s/config.json: expected a number %s", fixture->folder, key);
    *number = json_number_value(value);
    return OK;
}

status rival_size(const struct rival_fixture *fixture, const char *key, size_t *size, struct error *error)
{
    double number;
    TRY(rival_number(fixture, key, &number, error));
    if (!(number >= 1 && number < 1e6))
        return error_set(error, ERROR_FORMAT, "%s/config.json: %s: expected a size of 1 or more, found %g",
                         fixture->folder, key, number);
    *size = (size_t)number;
    return OK;
}

static const struct kind *kind_of(const json_t *config)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (json_object_get(config, kinds[i].key) != NULL)
            return &kinds[i];
    return NULL;
}

static status replay_open(struct rival_fixture *fixture, struct error *error)
{
    const struct kind *kind = kind_of(fixture->config);
    if (kind == NULL)
        return error_set(error, ERROR_FORMAT, "%s/config.json: no kind of fixture has these keys", fixture->folder);
    char *path = path_format("%s/data.safetensors", fixture->folder);
    status result =
        path != NULL ? safetensors_open(&fixture->data, path, error) : error_set(error, ERROR_MEMORY, "no memory");
    free(path);
    NEXT(result, kind->replay(fixture, error));
    safetensors_close(fixture->data);
    return result;
}

/* What fails is printed, so that other folders are replayed all the same. */
static void replay_one(const char *folder, const char *path, const struct backend_settings *backend, bool *good)
{
    struct report report = {.folder = folder};
    struct error error;
    json_error_t fault;
    struct rival_fixture fixture = {
        .folder = folder, .config = json_load_file(path, 0, &fault), .backend = backend, .report = &report};
    status result = fixture.config != NULL ? replay_open(&fixture, &error)
                                           : error_set(&error, ERROR_FORMAT, "%s: %s", path, fault.text);
    json_decref(fixture.config);
    if (result != OK)
        fprintf(stderr, "%s: %s\n", folder, error.message);
    *good = report_finish(&report) && result == OK && *good;
}

static status replay_folder(const char *folder, const struct backend_settings *backend, bool *good, struct error *error)
{
    struct directory directory;
    size_t replayed = 0;
    TRY(directory_list(&directory, folder, error));
    for (size_t i = 0; i < directory.count; i++) {
        char *inner = path_format("%s/%s", folder, directory.names[i]), *config = path_format("%s/config.json", inner);
        if (file_exists(config)) {
            replay_one(inner, config, backend, good);
            replayed++;
        }
        free(inner);
        free(config);
    }
    directory_free(&directory);
    return replayed > 0 ? OK
                        : error_set(error, ERROR_FORMAT, "%s: expected a config.json, or folders with one", folder);
}

static status replay(const char *folder, const struct backend_settings *backend, bool *good, struct error *error)
{
    struct backend *opened;
    char *config = path_format("%s/config.json", folder);
    bool alone = file_exists(config);
    status result = backend_open(&opened, backend, error); /* a machine without it is skipped */
    *good = true;
    if (result == OK) {
        backend_close(opened);
        if (alone)
            replay_one(folder, config, backend, good);
        else
            result = replay_folder(folder, backend, good, error);
    }
    free(config);
    return result;
}

int main(int argc, char **argv)
{
    struct backend_settings backend = {.name = "auto"};
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--backend") == 0) {
        backend.name = argv[2];
        first = 3;
    }
    if (first >= argc || strncmp(argv[first], "--", 2) == 0) {
        fprintf(stderr, "usage: replay_rivals [--backend cpu|cuda|auto] FOLDER...\n");
        return 2;
    }
    return replay_folders(argv + first, argc - first, &backend, replay);
}
