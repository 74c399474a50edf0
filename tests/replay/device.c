/* The device of a replay, whose operations take what a fixture recorded in place of random numbers. */
#include "models/dispatch.h"
#include "tests/replay/replay.h"

enum { BLOCK_BITS = 40 }; /* of expert_numbers: the tower and the block are above them */

/* The table is the first member. */
static const struct given *given_of(const struct backend *backend)
{
    return (const struct given *)backend->ops;
}

static const void *noise_of(const struct given *given, uint64_t base, size_t values)
{
    const float *noise = given->noise[base >> (BLOCK_BITS + 16)];
    return noise != NULL ? noise + (base >> BLOCK_BITS & 0xffff) * values : NULL;
}

static status route(struct backend *backend, const struct route *operation, struct error *error)
{
    const struct given *given = given_of(backend);
    struct route with = *operation;
    with.noise = noise_of(given, with.noise_base, with.batch * with.experts);
    return given->own->route(backend, &with, error);
}

static status route_softmax(struct backend *backend, const struct route_softmax *operation, struct error *error)
{
    const struct given *given = given_of(backend);
    struct route_softmax with = *operation;
    with.noise = noise_of(given, with.noise_base, with.samples * with.experts);
    return given->own->route_softmax(backend, &with, error);
}

static status partition(struct backend *backend, const struct partition *operation, struct error *error)
{
    const struct given *given = given_of(backend);
    struct partition with = *operation;
    if (given->owner != NULL)
        with.owner = given->owner;
    return given->own->partition(backend, &with, error);
}

void replay_device_open(struct replay *r)
{
    must(backend_open(&r->backend, &r->settings, &error));
    must(r->backend->ops->arena_create(r->backend, &r->arena, 0, "replay", &error));
    r->given = (struct given){.ops = *r->backend->ops, .own = r->backend->ops};
    r->given.ops.route = route;
    r->given.ops.route_softmax = route_softmax;
    r->given.ops.partition = partition;
    r->backend->ops = &r->given.ops;
}

void replay_device_close(struct replay *r)
{
    r->backend->ops = r->given.own;
    r->backend->ops->arena_destroy(r->backend, &r->arena);
    backend_close(r->backend);
}

void *replay_upload(struct replay *r, struct arena *arena, const void *values, size_t bytes)
{
    struct tensor memory;
    must(tensor_take(&memory, arena, TENSOR_U8, "fixture", 1, &bytes, &error));
    must(values != NULL ? r->backend->ops->upload(r->backend, memory.data, values, bytes, &error)
                        : r->backend->ops->zero(r->backend, memory.data, bytes, &error));
    return memory.data;
}

void *replay_download(struct replay *r, const void *device, size_t bytes)
{
    void *values = replay_take(r, 1, bytes);
    must(r->backend->ops->download(r->backend, values, device, bytes, &error));
    return values;
}
