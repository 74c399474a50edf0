/* Adapters in safetensors files. What opens fits the model, a CLIP of one block per tower. */
#include "tests/fuzz/target.h"

#include <stdlib.h>

#include "adapters/adapter_file.h"
#include "tests/fuzz/input_file.h"

enum { MEMORY = 1 << 20 };

static const struct clip_dimensions dimensions = {.embed = 4,
                                                  .resolution = 8,
                                                  .patch = 8,
                                                  .image_width = 3,
                                                  .image_blocks = 1,
                                                  .vocabulary = 8,
                                                  .context = 4,
                                                  .text_width = 2,
                                                  .text_blocks = 1};

/* Opened once: it starts threads. */
static struct backend *cpu(struct arena *arena)
{
    static struct backend *backend;
    static struct arena memory;
    struct error error;
    if (backend == NULL &&
        (backend_open(&backend, &(struct backend_settings){.name = "cpu", .threads = 1}, &error) != OK ||
         backend->ops->arena_create(backend, &memory, MEMORY, "fuzz", &error) != OK))
        abort();
    *arena = memory;
    return backend;
}

static int open_adapters(const char *path)
{
    struct adapters *adapters;
    struct arena arena;
    struct error error;
    struct backend *backend = cpu(&arena);
    if (adapters_open(&adapters, backend, &arena, &dimensions, path, 0, 1, &error) != OK)
        return 0;
    const struct adapter_settings *s = &adapters->settings;
    int failed = s->experts == 0 || s->top_k == 0 || s->top_k > s->experts || s->tasks == 0 || s->bottleneck == 0;
    adapters_destroy(adapters);
    return failed;
}

int fuzz_target(const uint8_t *data, size_t size)
{
    struct input_file file;
    struct error error;
    struct text routers = {0};
    input_file_open(&file, data, size);
    int failed = open_adapters(file.path);
    if (adapter_file_routers(file.path, &routers, &error) == OK)
        failed |= routers.failed;
    text_free(&routers);
    input_file_close(&file);
    return failed;
}
