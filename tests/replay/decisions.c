#include "tests/replay/decisions.h"

#include <math.h>
#include <stdlib.h>

/* The dispatch that nobody computes with. */
static status take_dispatch(struct decisions *d, const struct route *r, struct dispatch *out, struct error *error)
{
    size_t choices = r->batch * out->top_k;
    struct tensor memory;
    *out = (struct dispatch){.samples = r->batch, .experts = r->experts, .top_k = out->top_k};
    const struct {
        void *place;
        size_t count;
    } wanted[] = {{&out->chosen, choices}, {&out->gates, choices},  {&out->slot, choices},
                  {&out->sample, choices}, {&out->choice, choices}, {&out->offsets, r->experts + 1}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        TRY(tensor_take(&memory, &d->room, TENSOR_I32, "watched routing", 1, &wanted[i].count, error));
        *(void **)wanted[i].place = memory.data;
    }
    return OK;
}

static status take_rest(struct decisions *d, struct route *r, struct error *error)
{
    struct tensor memory;
    size_t logits[] = {r->batch, r->experts};
    TRY(tensor_take(&memory, &d->room, TENSOR_F32, "noise logits", 2, logits, error));
    r->noise_logits = memory.data;
    TRY(tensor_take(&memory, &d->room, TENSOR_F32, "noise", 2, logits, error));
    r->drawn = memory.data;
    TRY(tensor_take(&memory, &d->room, TENSOR_I32, "counts", 1, &r->experts, error));
    r->counts = memory.data;
    r->used = NULL;
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
                                  .chosen = malloc(n * sizeof *seen->chosen),
                                  .gates = malloc(n * sizeof *seen->gates)};
    if (seen->chosen == NULL || seen->gates == NULL)
        return error_set(error, ERROR_MEMORY, "no memory for %zu choices", n);
    TRY(d->watched->download(d->backend, seen->chosen, wide->chosen, n * sizeof *seen->chosen, error));
    return d->watched->download(d->backend, seen->gates, wide->gates, n * sizeof *seen->gates, error);
}

/* The table is the first member of the decisions. */
static status watch_route(struct backend *backend, const struct route *route, struct error *error)
{
    struct decisions *d = (struct decisions *)backend->ops;
    TRY(d->watched->route(backend, route, error));
    struct route again = *route;
    struct dispatch wide = {.top_k = route->top_k < route->experts ? route->top_k + 1 : route->top_k};
    arena_reset(&d->room);
    TRY(take_dispatch(d, route, &wide, error));
    TRY(take_rest(d, &again, error));
    again.top_k = wide.top_k;
    again.dispatch = &wide;
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
