#include "harness/evaluate/class_experts.h"

#include <stdlib.h>

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
