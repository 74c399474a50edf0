#include "tests/replay/given.h"

#include "models/backend.h"
#include "models/dispatch.h"

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

void given_begin(struct given *given, struct backend *backend)
{
    *given = (struct given){.ops = *backend->ops, .own = backend->ops, .backend = backend};
    given->ops.route = route;
    given->ops.route_softmax = route_softmax;
    given->ops.partition = partition;
    backend->ops = &given->ops;
}

void given_end(struct given *given)
{
    given->backend->ops = given->own;
}
