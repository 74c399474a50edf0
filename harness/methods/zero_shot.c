/* The untouched CLIP. Also the template for a method: copy this file, say what is trained, fill the fixed points
 * that differ, declare the table in methods.h and list it in ../method.c. */
#include "harness/methods/methods.h"

static enum method_trains trains(const struct options *options)
{
    (void)options;
    return TRAINS_NOTHING;
}

const struct method method_zero_shot = {.name = "zero_shot", .source = "Radford et al. 2021 (CLIP)", .trains = trains};
