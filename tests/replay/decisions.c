#include "tests/replay/decisions.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"

/* What a routing fills that nobody computes with. */
static status take_outputs(struct decisions *d, struct route *r, struct dispatch *out, struct error *error)
{
    size_t choices = r->batch * out->top_k, logits = r->batch * r->experts;
    const struct {
        void *place;
        size_t count;
    } wanted[] = {{&out->chosen, choices},    {&out->gates, choices},  {&out->slot, choices},
                  {&out->sample, choices},    {&out->choice, choices}, {&out->offsets, r->experts + 1},
                  {&r->noise_logits, logits}, {&r->drawn, logits},     {&r->counts, r->experts}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct tensor memory;
        TRY(tensor_take(&memory, &d->room, TENSOR_I32, "watched routing", 1, &wanted[i].count, error));
        *(void **)wanted[i].place = memory.data;
    }
    r->used = NULL;
    r->top_k = out->top_k;
    r->dispatch = out;
    return d->watched->zero(d->backend, r->counts, r->experts * sizeof *r->counts, error);
}

static status keep(struct decisions *d, const struct route *r, const struct dispatch *wide, struct error *error)
{
    size_t n = wide->samples * wide->top_k;
    if (d->count == DECISIONS_ROUTINGS)
        return error_set(error, ERROR_ARGUMENT, "more than %d routings in a step", DECISIONS_ROUTINGS);
    struct routing_seen *seen = &d->routings[d->count++];
    *seen = (struct routing_seen){.tower = (int)(r->noise_base >> (DECISIONS_BLOCK_BITS + 16)),
                                  .block = (int)(r->noise_base >> DECISIONS_BLOCK_BITS & 0xffff),
                                  .samples = r->batch,
                                  .top_k = r->top_k,
                                  .width = wide->top_k,
                                  .chosen = xmalloc(n * sizeof *seen->chosen),
                                  .gates = xmalloc(n * sizeof *seen->gates)};
    TRY(d->watched->download(d->backend, seen->chosen, wide->chosen, n * sizeof *seen->chosen, error));
    return d->watched->download(d->backend, seen->gates, wide->gates, n * sizeof *seen->gates, error);
}

/* The table is the first member of the decisions. */
static status watch_route(struct backend *backend, const struct route *route, struct error *error)
{
    struct decisions *d = (struct decisions *)backend->ops;
    TRY(d->watched->route(backend, route, error));
    struct route again = *route;
    struct dispatch wide = {.samples = route->batch,
                            .experts = route->experts,
                            .top_k = route->top_k < route->experts ? route->top_k + 1 : route->top_k};
    arena_reset(&d->room);
    TRY(take_outputs(d, &again, &wide, error));
    TRY(d->watched->route(backend, &again, error));
    return keep(d, route, &wide, error);
}

/* Every step is asked for one by one: what is recorded cannot be watched. */
static status record_nothing(struct backend *backend, struct recording *recording, recorded_body body, void *context,
                             struct error *error)
{
    (void)backend;
    *recording = (struct recording){0};
    return body(context, error);
}

status decisions_watch(struct decisions *d, struct backend *backend, struct error *error)
{
    *d = (struct decisions){.ops = *backend->ops, .watched = backend->ops, .backend = backend};
    TRY(backend->ops->arena_create(backend, &d->room, (size_t)64 << 20, "watched routing", error));
    d->ops.route = watch_route;
    d->ops.record = record_nothing;
    backend->ops = &d->ops;
    return OK;
}

void decisions_clear(struct decisions *d)
{
    for (size_t i = 0; i < d->count; i++) {
        free(d->routings[i].chosen);
        free(d->routings[i].gates);
    }
    d->count = 0;
}

void decisions_end(struct decisions *d)
{
    if (d->backend == NULL)
        return;
    decisions_clear(d);
    d->backend->ops = d->watched;
    d->watched->arena_destroy(d->backend, &d->room);
    d->backend = NULL;
}

const int32_t *routing_experts(const struct routing_seen *routing, size_t sample)
{
    const int32_t *chosen = routing->chosen + sample * routing->width;
    return chosen[0] >= 0 ? chosen : NULL;
}

bool routing_same(const struct routing_seen *a, const struct routing_seen *b, size_t sample)
{
    const int32_t *of_a = routing_experts(a, sample), *of_b = routing_experts(b, sample);
    if (of_a == NULL || of_b == NULL)
        return of_a == of_b;
    for (size_t i = 0; i < a->top_k; i++) {
        bool found = false;
        for (size_t k = 0; k < b->top_k; k++)
            found = found || of_a[i] == of_b[k];
        if (!found)
            return false;
    }
    return a->top_k == b->top_k;
}

/* Gates of one softmax: the logarithm of their quotient is the difference of the logits. */
double routing_margin(const struct routing_seen *routing, size_t sample)
{
    const float *gates = routing->gates + sample * routing->width;
    if (routing->width == routing->top_k || routing_experts(routing, sample) == NULL)
        return (double)INFINITY;
    return log((double)gates[routing->top_k - 1]) - log((double)gates[routing->top_k]);
}
