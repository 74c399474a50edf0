/* Zero-shot CLIP. Also the template for a method: copy this file, say what is trained, fill the hooks that differ, and
 * name it in methods.h. */
#include "harness/methods/methods.h"

const struct method method_zero_shot = {
    .name = "zero_shot", .source = "Radford et al. 2021 (CLIP)", .formula = "θ = θ_0"};
