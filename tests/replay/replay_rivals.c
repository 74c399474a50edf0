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
    void (*replay)(struct rival_fixture *fixture);
} kinds[] = {{"tensors", replay_condu}, {"weight_share", replay_keeplora}, {"temperature", replay_moram}};

const struct safetensor *rival_tensor(const struct rival_fixture *fixture, int rank, const char *name, ...)
{
    char text[96];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(text, sizeof text, name, arguments);
    va_end(arguments);
    const struct safetensor *tensor = recorded_type(fixture->data, text, SAFETENSOR_F32);
    if (tensor->rank != rank)
        must(error_set(&error, ERROR_FORMAT, "%s: expected %s of %d dimensions, found %d",
                       safetensors_path(fixture->data), text, rank, tensor->rank));
    must(safetensors_expect_finite(fixture->data, text, tensor->data, safetensor_elements(tensor), &error));
    return tensor;
}

double rival_number(const struct rival_fixture *fixture, const char *key)
{
    return recorded_number(fixture->config, key);
}

size_t rival_size(const struct rival_fixture *fixture, const char *key)
{
    double number = rival_number(fixture, key);
    if (!(number >= 1 && number < 1e6))
        must(error_set(&error, ERROR_FORMAT, "%s/config.json: %s: expected a size of 1 or more, found %g",
                       fixture->folder, key, number));
    return (size_t)number;
}

static const struct kind *kind_of(const json_t *config)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (json_object_get(config, kinds[i].key) != NULL)
            return &kinds[i];
    return NULL;
}

static bool replay_one(const char *folder, const struct backend_settings *backend)
{
    struct report report = {.folder = folder};
    struct rival_fixture fixture = {.folder = folder,
                                    .config = recorded_json(folder, "config.json"),
                                    .data = recorded_open(folder, "data.safetensors"),
                                    .backend = backend,
                                    .report = &report};
    const struct kind *kind = kind_of(fixture.config);
    if (kind == NULL)
        must(error_set(&error, ERROR_FORMAT, "%s/config.json: no kind of fixture has these keys", folder));
    kind->replay(&fixture);
    safetensors_close(fixture.data);
    json_decref(fixture.config);
    return report_finish(&report);
}

static bool has_config(const char *folder)
{
    char *config = path_format("%s/config.json", folder);
    bool has = file_exists(config);
    free(config);
    return has;
}

static bool replay(const char *folder, const struct backend_settings *backend)
{
    struct directory directory;
    size_t replayed = 0, good = 0;
    if (has_config(folder))
        return replay_one(folder, backend);
    must(directory_list(&directory, folder, &error));
    for (size_t i = 0; i < directory.count; i++) {
        char *inner = path_format("%s/%s", folder, directory.names[i]);
        if (has_config(inner)) {
            good += replay_one(inner, backend);
            replayed++;
        }
        free(inner);
    }
    directory_free(&directory);
    if (replayed == 0)
        must(error_set(&error, ERROR_FORMAT, "%s: expected a config.json, or folders with one", folder));
    return good == replayed;
}

int main(int argc, char **argv)
{
    return replay_main("replay_rivals", argc, argv, replay);
}
