/* The choice among the compiled loops and products for this machine.
 *
 *     struct cpu_instructions instructions;
 *     TRY(cpu_instructions_choose(&instructions, error));
 *     instructions.vector->add(n, a, b, y);
 *
 * MTIL_ISA names an instruction set below the best: amx, avx512bf16, avx512, avx2 or baseline, as far as the machine has
 * it, or portable, which multiplies bf16 in plain C, far more slowly than f32. It is for tests, and for results that a
 * lesser machine can repeat.
 */
#pragma once

#include "models/cpu/bf16.h"

struct cpu_instructions {
    const char *name;
    const struct vector_kernels *vector;
    const struct bf16_kernels *bf16; /* NULL: no unit multiplies bf16 */
    bool limited;                    /* by MTIL_ISA */
};

/* ERROR_DEVICE where MTIL_ISA names nothing that this machine has. */
status cpu_instructions_choose(struct cpu_instructions *instructions, struct error *error);
