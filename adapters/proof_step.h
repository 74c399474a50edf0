/* Compares a training step and an evaluation of a small model on a device with those on the CPU: both towers as
 * branches, experts, attention, the selector's autoencoder. The step runs once plainly, is recorded and then replayed
 * three times, as in training.
 *
 *     TRY(proof_of_step(cpu, device, error));            // as proof_of_operations (models/proof.h)
 */
#pragma once

#include "models/backend.h"

status proof_of_step(struct backend *cpu, struct backend *device, struct error *error);
