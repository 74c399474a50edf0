/* Compares what a device computes with the CPU, before it is trusted: every one of BACKEND_OPERATIONS on the same operands, of
 * sizes that leave ragged tails, and rows of products in batches of any size.
 *
 *     TRY(proof_of_operations(cpu, device, error));       // the CPU's precision is f32, whatever the device's
 *
 * ERROR_DEVICE names what differs: the operation, both numbers and the tolerance. Other errors, such as a lack of
 * memory, say nothing of the arithmetic.
 */
#pragma once

#include "models/backend.h"

status proof_of_operations(struct backend *cpu, struct backend *device, struct error *error);

/* Normal numbers [n], of values that bf16 does not round where the device's products are in bf16. */
void proof_draw(float *values, size_t n, uint64_t first, const struct backend *device);

/* A deviation of at most tolerance times the largest of the CPU's values passes; NaN passes where both have it. */
status proof_compare(const char *operation, const float *cpu, const float *device, size_t n, double tolerance,
                     struct error *error);
