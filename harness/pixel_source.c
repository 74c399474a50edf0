#include "harness/pixel_source.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

status pixel_source_open(struct pixel_source *source, struct error *error)
{
    size_t r = source->resolution;
    source->loader = NULL;
    source->pixels = malloc(array_size(source->batch, r * r * 3));
    if (source->pixels == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for a batch of %zu images", source->batch);
    if (source->kept != NULL)
        return OK;
    struct loader_settings settings = {.dataset = source->dataset,
                                       .split = SPLIT_TEST,
                                       .items = source->items,
                                       .item_count = source->n,
                                       .resolution = (int)r,
                                       .batch = source->batch,
                                       .threads = 1,
                                       .ahead = 4};
    return loader_create(&source->loader, &settings, error);
}

status pixel_source_read(struct pixel_source *source, size_t step, size_t *count, struct error *error)
{
    size_t bytes = source->resolution * source->resolution * 3, first = step * source->batch;
    if (source->loader != NULL)
        return loader_read(source->loader, step, source->pixels, NULL, NULL, count, error);
    *count = source->n - first < source->batch ? source->n - first : source->batch;
    for (size_t i = 0; i < *count; i++)
        memcpy(source->pixels + i * bytes, source->kept + source->items[first + i] * bytes, bytes);
    return OK;
}

void pixel_source_close(struct pixel_source *source)
{
    loader_destroy(source->loader);
    free(source->pixels);
    source->loader = NULL;
    source->pixels = NULL;
}
