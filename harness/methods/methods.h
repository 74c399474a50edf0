/* The methods: a file in this folder and a line here each, in the order of lists. */
#pragma once

#include "harness/train/method.h"

#define METHODS(X)                                                                                                     \
    X(moe_adapters)                                                                                                    \
    X(merge_experts)                                                                                                   \
    X(zero_shot)                                                                                                       \
    X(finetune)                                                                                                        \
    X(joint)                                                                                                           \
    X(continual_ft)                                                                                                    \
    X(wise_ft)                                                                                                         \
    X(mag_max)                                                                                                         \
    X(task_arithmetic)                                                                                                 \
    X(ties)                                                                                                            \
    X(condu)                                                                                                           \
    X(l2)                                                                                                              \
    X(ewc)                                                                                                             \
    X(lwf)                                                                                                             \
    X(lwf_vr)                                                                                                          \
    X(icarl)                                                                                                           \
    X(replay)                                                                                                          \
    X(zscl)                                                                                                            \
    X(rail_primal)                                                                                                     \
    X(rail_dual)                                                                                                       \
    X(lora)                                                                                                            \
    X(o_lora)                                                                                                          \
    X(inf_lora)                                                                                                        \
    X(sd_lora)                                                                                                         \
    X(keep_lora)                                                                                                       \
    X(co_dy_ra)                                                                                                        \
    X(moram)                                                                                                           \
    X(mingle)                                                                                                          \
    X(ran_pac)                                                                                                         \
    X(simple_cil)                                                                                                      \
    X(lada)                                                                                                            \
    X(rapf)                                                                                                            \
    X(engine)                                                                                                          \
    X(diki)                                                                                                            \
    X(dpw)                                                                                                             \
    X(supervised)                                                                                                      \
    X(seed)                                                                                                            \
    X(dml)                                                                                                             \
    X(external)

#define DECLARE(name) extern const struct method method_##name;
METHODS(DECLARE)
#undef DECLARE

status method_find(const struct method **method, const char *name, struct error *error);
const struct method *method_at(size_t index); /* NULL past the last one */

/* The default of a section's key with a mixture of method supervised (method.ffn); NULL: the key's own default. */
const char *mixture_preset(const char *ffn, const char *section, const char *key);

/* Whether the section affects what a method with these options computes. */
bool method_uses(const struct method *method, const struct options *options, const char *section);
