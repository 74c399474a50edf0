/* Measures the effects of merges: how often the merged expert is chosen in the EFFECT_WINDOW iterations that follow
 * (fewer where the task ends), the mean loss before and after, and the distance of the merged expert's function from
 * its sources'. The measurement does not change any result.
 *
 *     TRY(merge_effects_open(&effects, model, memory, error));                     // on the leader; needs NEEDS_PROBES
 *     TRY(merge_effects_step(effects, model, iteration, error));                   // after every iteration
 *     TRY(merge_effects_look(effects, run, iteration, error));                   // before a merge
 *     ... adapters_merge(…, &run->changes, …) ...
 *     TRY(merge_effects_add(effects, run, iteration, first_change, error));      // after it
 *     TRY(merge_effects_end_task(effects, run, iterations, error));
 *
 * Losses and selection counts are copied on the device when a window ends, and read at the next merge or at the end of
 * the task, so that iterations without a merge wait for nothing. The effects read are added to run->effects.
 */
#pragma once

#include "harness/train/method.h"

enum { EFFECT_WINDOW = 50 };

struct merge_effects; /* NULL in all functions: nothing is measured */

status merge_effects_open(struct merge_effects **effects, const struct model *model, struct arena *arena,
                          struct error *error);
void merge_effects_close(struct merge_effects *effects);
void merge_effects_begin_task(struct merge_effects *effects);
status merge_effects_step(const struct merge_effects *effects, const struct model *model, size_t iteration,
                          struct error *error);
status merge_effects_look(struct merge_effects *effects, struct method_run *run, size_t iteration, struct error *error);

/* Merges among run->changes from number `first` on. */
status merge_effects_add(struct merge_effects *effects, const struct method_run *run, size_t iteration, size_t first,
                         struct error *error);
status merge_effects_end_task(struct merge_effects *effects, struct method_run *run, size_t iterations,
                              struct error *error);

/* For a method's keep. An archive of a session with merge.analysis=no has none; restoring from it leaves no merges to
 * measure. */
status merge_effects_keep(struct merge_effects *effects, const struct serializer *serializer, struct error *error);
