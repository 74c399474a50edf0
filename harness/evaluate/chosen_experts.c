#include "harness/evaluate/chosen_experts.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

void class_experts_create(struct class_experts *experts, size_t blocks, size_t classes, size_t count)
{
    *experts = (struct class_experts){.blocks = blocks, .classes = classes, .experts = count};
    experts->counts = xcalloc(array_size(blocks * classes, count), sizeof *experts->counts);
    experts->gates = xcalloc(array_size(blocks * classes, count), sizeof *experts->gates);
}

void class_experts_free(struct class_experts *experts)
{
    free(experts->counts);
    free(experts->gates);
    *experts = (struct class_experts){0};
}

void class_experts_add(struct class_experts *experts, size_t class, const int32_t *chosen, const float *gates,
                       size_t choices)
{
    for (size_t block = 0; block < experts->blocks; block++)
        for (size_t i = 0; i < choices; i++) {
            int32_t expert = chosen[block * choices + i];
            size_t at = (block * experts->classes + class) * experts->experts + (size_t)expert;
            if (expert < 0)
                continue;
            experts->counts[at]++;
            experts->gates[at] += (double)gates[block * choices + i];
        }
}

void patch_experts_create(struct patch_experts *patches, const struct patch_experts *shape)
{
    *patches = *shape;
    patches->images = shape->images < shape->of ? shape->images : shape->of;
    size_t bytes =
        array_size(patches->images * patches->blocks, patches->side * patches->side * sizeof *patches->experts);
    patches->experts = xmalloc(bytes);
    memset(patches->experts, 0xff, bytes); /* −1 */
}

void patch_experts_free(struct patch_experts *patches)
{
    free(patches->experts);
    *patches = (struct patch_experts){0};
}

size_t patch_experts_item(const struct patch_experts *patches, size_t i)
{
    return i * patches->of / patches->images;
}

void patch_experts_keep(struct patch_experts *patches, size_t item, const int32_t *chosen)
{
    size_t count = patches->side * patches->side, i = (item * patches->images + patches->of - 1) / patches->of;
    if (i >= patches->images || patch_experts_item(patches, i) != item)
        return;
    for (size_t block = 0; block < patches->blocks; block++) {
        const int32_t *of_block = chosen + block * (1 + count) * patches->top_k;
        for (size_t patch = 0; patch < count; patch++)
            patches->experts[(i * patches->blocks + block) * count + patch] = of_block[(1 + patch) * patches->top_k];
    }
}
