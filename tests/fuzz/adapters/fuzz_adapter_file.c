/* Adapters in safetensors files. What opens fits the model, a CLIP of one block per tower. */
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

#include <math.h>
#include <stdlib.h>

#include "adapters/deltas.h"
#include "adapters/files/adapter_file.h"
#include "adapters/files/adapter_metadata.h"
#include "adapters/files/selector_file.h"
#include "adapters/prefixes.h"
#include "core/alloc.h"

enum { MEMORY = 1 << 20 };

static const struct clip_dimensions dimensions = {.embed = 4,
                                                  .resolution = 8,
                                                  .patch = 8,
                                                  .image_width = 3,
                                                  .image_hidden = 12,
                                                  .image_heads = 1,
                                                  .image_blocks = 1,
                                                  .vocabulary = 8,
                                                  .context = 4,
                                                  .text_width = 2,
                                                  .text_hidden = 8,
                                                  .text_heads = 1,
                                                  .text_blocks = 1};

/* Opened once: it starts threads. Each adapter gets a copy of the memory, from its beginning. */
static struct backend *backend;
static struct arena memory;

static void open_backend(void)
{
    if (backend == NULL &&
        (backend_open(&backend, &(struct backend_settings){.name = "cpu", .threads = 1}, &fuzz_error) != OK ||
         backend->ops->arena_create(backend, &memory, MEMORY, "fuzz", &fuzz_error) != OK))
        abort();
}

static void open_adapters(const struct safetensors *file)
{
    struct adapters *adapters;
    struct arena arena = memory;
    if (adapters_open(&adapters, backend, &arena, &dimensions, file, (const int[]){0}, 1, &fuzz_error) != OK)
        return;
    const struct adapter_settings *s = &adapters->settings;
    assert(s->experts > 0 && s->top_k > 0 && s->top_k <= s->experts && s->tasks > 0);
    adapters_destroy(adapters);
}

/* Changes of a CLIP's matrices, or prefixes of its attention. */
static void open_on_clip(const struct safetensors *file)
{
    struct clip *clip;
    struct deltas *deltas = NULL;
    struct prefixes *prefixes = NULL;
    struct arena arena = memory;
    if (clip_create(&clip, backend, &arena, &dimensions, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU, &fuzz_error) != OK)
        abort();
    if (delta_file_is(file) && deltas_open(&deltas, clip, &arena, file, &fuzz_error) == OK)
        assert(deltas->settings.tasks > 0 && isfinite(deltas->settings.scale) && deltas->settings.scale != 0);
    if (prefix_file_is(file) && prefixes_open(&prefixes, clip, &arena, file, &fuzz_error) == OK)
        assert(prefixes->settings.tasks > 0);
    prefixes_destroy(prefixes);
    deltas_destroy(deltas);
    clip_destroy(clip);
}

/* Every coder that the file is said to have, one after the other. */
static void open_selector(const struct safetensors *file, size_t code)
{
    struct arena arena = memory;
    size_t trained;
    if (selector_file_check(file, dimensions.image_width, code, 0, &trained, &fuzz_error) != OK || trained == 0)
        return;
    struct autoencoder **coders = xcalloc(trained, sizeof *coders);
    status result = OK;
    for (size_t k = 0; k < trained; k++)
        NEXT(result, autoencoder_create(&coders[k], backend, &arena, dimensions.image_width, code, PARAMETERS_FROZEN,
                                        &fuzz_error));
    if (result == OK)
        assert(selector_file_read(file, coders, trained, &fuzz_error) == OK);
    for (size_t k = 0; k < trained; k++)
        autoencoder_destroy(coders[k]);
    free(coders);
}

static void read_metadata(const struct safetensors *file)
{
    struct adapter_metadata metadata;
    if (adapter_metadata_read(&metadata, file, &fuzz_error) != OK)
        return;
    assert(metadata.task_count <= ADAPTER_TASKS_MOST && (metadata.code == 0 || metadata.decision_batch > 0));
    for (size_t k = 0; k < metadata.task_count; k++) {
        const struct adapter_task *task = &metadata.tasks[k];
        assert(adapter_metadata_find(&metadata, task->name) == (int)k);
        assert(task->classes.count > 0 && task->templates.count > 0);
    }
    if (metadata.code > 0)
        open_selector(file, metadata.code);
    adapter_metadata_free(&metadata);
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct safetensors *file;
    struct text routers = {0};
    open_backend();
    if (safetensors_open(&file, input_file(data, size), WEIGHTS_WHOLE, &fuzz_error) != OK)
        return 0;
    open_adapters(file);
    open_on_clip(file);
    adapter_file_routers(file, &routers, &fuzz_error);
    text_free(&routers);
    read_metadata(file);
    safetensors_close(file);
    return 0;
}
