/* Sketches of experts: short vectors that keep the distances between experts, so that the paths of experts can be
 * stored without their weights.
 *
 *     struct expert_sketch sketches[ADAPTER_EXPERTS];
 *     TRY(adapters_sketch(adapters, TOWER_IMAGE, bank, sketches, error));
 *
 * A sketch is a fixed linear map of the expert's D parameters: each is added, with a random sign, to one of SKETCH sums (Charikar, Chen and
 * Farach-Colton, "Finding frequent items in data streams", ICALP 2002). Expected products are exact. The standard error of a squared
 * distance is at most √(2 / SKETCH) of it (Weinberger et al., "Feature hashing for large scale multitask learning", ICML 2009), 8.8%, and
 * of a distance half that. The map is linear and the same for all experts of a bank: equal experts have equal sketches, and that of
 * a mean of experts is the mean of theirs but for rounding.
 */
#pragma once

#include "adapters/adapter.h"

enum { SKETCH = 256 };

struct expert_sketch {
    float values[SKETCH];
    double distance; /* ‖θ − θ̄‖ to the mean of the bank's experts, of all parameters: no estimate */
};

/* sketches [E] of the experts of a bank. */
status adapters_sketch(const struct adapters *adapters, enum tower tower, size_t bank, struct expert_sketch *sketches,
                       struct error *error);
