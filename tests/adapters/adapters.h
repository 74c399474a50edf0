/* What tests do with adapters by themselves, and training does with all of a model's groups. */
#pragma once

#include "adapters/adapter.h"
#include "adapters/routers/router.h"

/* Trainable values of both towers; ViT-B/16 with 55 experts and 11 tasks: 127,649,280. */
static inline size_t adapters_values(const struct adapters *adapters)
{
    return parameters_size(adapters->towers[TOWER_IMAGE].parameters) +
           parameters_size(adapters->towers[TOWER_TEXT].parameters);
}

static inline size_t adapters_count_values(const struct clip_dimensions *n, const struct adapter_settings *s)
{
    size_t widths[TOWERS] = {n->image_width, n->text_width}, total = 0,
           matrices = router_kind_of(s)->weights + router_kind_of(s)->noise_weights;
    for (int t = 0; t < TOWERS; t++) {
        size_t hidden = adapters_hidden(n, s, (enum tower)t), expert = 2 * hidden * widths[t] + hidden + widths[t];
        total += adapter_place_count_banks(&s->place, n, (enum tower)t) *
                 ((s->experts + s->shared_expert) * expert + matrices * s->tasks * widths[t] * s->experts);
    }
    return total;
}

/* The statistics of the gradients, and a step of both groups. */
static inline status adapters_step(struct adapters *adapters, const struct step_state *state,
                                   const struct update_rule *rule, struct error *failure)
{
    TRY(adapters_before_update(adapters, rule, failure));
    for (int t = 0; t < TOWERS; t++)
        TRY(parameters_step(adapters->towers[t].parameters, state, rule, failure));
    return OK;
}

/* Frozen flags of a block, [E]. */
static inline status adapters_read_frozen(const struct adapters *adapters, enum tower tower, size_t block,
                                          int32_t *frozen, struct error *failure)
{
    return adapters->backend->ops->download(adapters->backend, frozen, adapters->towers[tower].banks[block].frozen,
                                            adapters->settings.experts * sizeof *frozen, failure);
}

/* Counts of a block, [E]. */
static inline status adapters_write_counts(struct adapters *adapters, enum tower tower, size_t block,
                                           const int32_t *counts, struct error *failure)
{
    return adapters->backend->ops->upload(adapters->backend, adapters->towers[tower].banks[block].counts, counts,
                                          adapters->settings.experts * sizeof *counts, failure);
}
