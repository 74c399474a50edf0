#include "models/parameters.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "models/optimizers/optimizer.h"

enum { ALIGNED = 16 }; /* every tensor begins at a multiple of so many floats, 64 bytes */

void parameters_create(struct parameters **result, struct backend *backend)
{
    struct parameters *group = xcalloc(1, sizeof *group);
    group->backend = backend;
    *result = group;
}

static void forget(const struct parameters *group)
{
    if (group->values != NULL)
        group->backend->forget(group->backend, group->values, group->values_count);
}

void parameters_destroy(struct parameters *group)
{
    if (group == NULL)
        return;
    forget(group);
    for (size_t i = 0; i < group->count; i++)
        free(group->list[i].name);
    free(group->list);
    free(group->host_flag);
    free(group->writes);
    free(group);
}

static void grow(struct parameters *group, size_t segments)
{
    size_t grown = group->segments + segments;
    group->list = xrealloc(group->list, array_size(group->count + 1, sizeof *group->list));
    group->host_flag = xrealloc(group->host_flag, array_size(grown, sizeof *group->host_flag));
    group->writes = xrealloc(group->writes, array_size(grown, sizeof *group->writes));
    memset(group->writes + group->segments, 0, segments * sizeof *group->writes);
}

status parameters_add(struct parameters *group, const char *name, int rank, const size_t *shape, size_t segments,
                      size_t first_flag, size_t *index, struct error *error)
{
    assert(group->values == NULL && rank <= TENSOR_RANK && segments > 0);
    size_t size = 1;
    for (int i = 0; i < rank; i++)
        size = array_size(size, shape[i]);
    size_t offset = (group->values_count + ALIGNED - 1) / ALIGNED * ALIGNED;
    if (size > SIZE_MAX / 4 || offset > SIZE_MAX / 4)
        return error_set(error, ERROR_MEMORY, "parameters: %s is larger than any memory", name);
    assert(size % segments == 0);
    grow(group, segments);
    struct parameter *p = &group->list[group->count];
    *p = (struct parameter){.name = xstrdup(name),
                            .rank = rank,
                            .size = size,
                            .offset = offset,
                            .first_segment = group->segments,
                            .segments = segments};
    for (int i = 0; i < rank; i++)
        p->shape[i] = shape[i];
    for (size_t s = 0; s < segments; s++)
        group->host_flag[group->segments + s] = (int32_t)(first_flag + s);
    group->segments += segments;
    group->values_count = offset + size;
    if (group->flags_count < first_flag + segments)
        group->flags_count = first_flag + segments;
    *index = group->count++;
    return OK;
}

/* pointer: to the one that receives the memory */
static status take(struct parameters *group, struct arena *arena, size_t bytes, void *pointer, struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, arena, TENSOR_U8, "an array of parameters", 1, &bytes, error));
    memcpy(pointer, &memory.data, sizeof memory.data);
    return group->backend->ops->zero(group->backend, memory.data, bytes, error);
}

static status upload_segments(struct parameters *group, struct error *error)
{
    OWNED uint64_t *offsets = xmalloc(array_size(group->segments + 1, sizeof *offsets));
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        for (size_t s = 0; s < p->segments; s++)
            offsets[p->first_segment + s] = p->offset + s * (p->size / p->segments);
    }
    offsets[group->segments] = group->values_count;
    struct backend *backend = group->backend;
    TRY(backend->ops->upload(backend, group->offsets, offsets, (group->segments + 1) * sizeof *offsets, error));
    TRY(backend->ops->upload(backend, group->flag, group->host_flag, group->segments * sizeof *group->host_flag,
                             error));
    for (size_t i = 0; i < group->flags_count; i++)
        TRY(backend->ops->upload(backend, group->flags + i, &(int32_t){1}, sizeof(int32_t), error));
    return OK;
}

status parameters_allocate(struct parameters *group, struct arena *arena, enum parameters_mode mode,
                           struct error *error)
{
    size_t bytes = array_size(group->values_count, sizeof(float));
    TRY(take(group, arena, bytes, &group->values, error));
    group->version = 1;
    forget(group);
    if (mode == PARAMETERS_FROZEN)
        return OK;
    TRY(take(group, arena, bytes, &group->gradients, error));
    TRY(take(group, arena, bytes, &group->first_moment, error));
    if (mode != PARAMETERS_TRAINED_ONE_MOMENT)
        TRY(take(group, arena, bytes, &group->second_moment, error));
    TRY(take(group, arena, (group->segments + 1) * sizeof(uint64_t), &group->offsets, error));
    TRY(take(group, arena, group->segments * sizeof(int32_t), &group->flag, error));
    TRY(take(group, arena, group->segments * sizeof(int32_t), &group->steps, error));
    TRY(take(group, arena, group->segments * sizeof(int32_t), &group->changes, error));
    TRY(take(group, arena, group->flags_count * sizeof(int32_t), &group->flags, error));
    return upload_segments(group, error);
}

size_t parameters_size(const struct parameters *group)
{
    size_t size = 0;
    for (size_t i = 0; i < group->count; i++)
        size += group->list[i].size;
    return size;
}

struct weight parameters_weight(const struct parameters *group, size_t index)
{
    assert(index < group->count && group->values != NULL);
    size_t offset = group->list[index].offset;
    return (struct weight){(float *)group->values + offset, group->gradients != NULL ? group->gradients + offset : NULL,
                           group->gradients == NULL};
}

const struct parameter *parameters_find(const struct parameters *group, const char *name)
{
    for (size_t i = 0; i < group->count; i++)
        if (strcmp(group->list[i].name, name) == 0)
            return &group->list[i];
    return NULL;
}

float *parameters_write(struct parameters *group, size_t offset, size_t n)
{
    group->version++;
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        size_t each = p->size / p->segments;
        for (size_t s = 0; s < p->segments; s++) {
            size_t first = p->offset + s * each;
            group->writes[p->first_segment + s] += first < offset + n && offset < first + each;
        }
    }
    group->backend->renew(group->backend, group->values + offset, n);
    return (float *)group->values + offset;
}

float *parameters_write_all(struct parameters *group)
{
    return parameters_write(group, 0, group->values_count);
}

status parameters_changes(const struct parameters *group, uint64_t *changes, struct error *error)
{
    OWNED int32_t *updates = xcalloc(group->segments, sizeof *updates);
    if (group->changes != NULL)
        TRY(group->backend->ops->download(group->backend, updates, group->changes, group->segments * sizeof *updates,
                                          error));
    for (size_t s = 0; s < group->segments; s++)
        changes[s] = (uint64_t)group->writes[s] << 32 | (uint32_t)updates[s];
    return OK;
}

status parameters_govern(struct parameters *group, const struct parameter *p, size_t flag, struct error *error)
{
    assert(flag < group->flags_count);
    for (size_t s = p->first_segment; s < p->first_segment + p->segments; s++)
        group->host_flag[s] = (int32_t)flag;
    if (group->flag == NULL)
        return OK;
    return group->backend->ops->upload(group->backend, group->flag + p->first_segment,
                                       group->host_flag + p->first_segment, p->segments * sizeof *group->flag, error);
}

status parameters_upload(struct parameters *group, const struct parameter *p, const float *values, struct error *error)
{
    return group->backend->ops->upload(group->backend, parameters_write(group, p->offset, p->size), values,
                                       p->size * sizeof *values, error);
}

status parameters_download(const struct parameters *group, const struct parameter *p, float *values,
                           struct error *error)
{
    return group->backend->ops->download(group->backend, values, group->values + p->offset, p->size * sizeof *values,
                                         error);
}

status parameters_download_all(const struct parameters *group, float *values, const char *path, struct error *error)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        TRY(parameters_download(group, p, values + p->offset, error));
        if (not_finite_at(values + p->offset, p->size) < p->size)
            return error_set(error, ERROR_FORMAT, "%s: tensor '%s' is not finite; nothing is written", path, p->name);
    }
    return OK;
}

status parameters_step(struct parameters *group, const struct step_state *state, const struct update_rule *rule,
                       struct error *error)
{
    const struct optimizer *optimizer = rule->optimizer != NULL ? rule->optimizer : &optimizer_adamw;
    group->version++;
    struct update update = {.segments = group->segments,
                            .n = group->values_count,
                            .offsets = group->offsets,
                            .flag = group->flag,
                            .flags = group->flags,
                            .steps = group->steps,
                            .changes = group->changes,
                            .values = (float *)group->values,
                            .gradients = group->gradients,
                            .first_moment = group->first_moment,
                            .second_moment = group->second_moment,
                            .state = state,
                            .guard = rule->guard,
                            .clear_skipped = rule->clear_skipped};
    assert(optimizer->one_moment || group->second_moment != NULL);
    return optimizer->step(group->backend, &update, rule, error);
}

status parameters_find_not_finite(const struct parameters *group, int32_t *found, struct error *error)
{
    return group->backend->ops->find_not_finite(group->backend,
                                                &(struct find_not_finite){.n = group->values_count,
                                                                          .segments = group->segments,
                                                                          .offsets = group->offsets,
                                                                          .flag = group->flag,
                                                                          .flags = group->flags,
                                                                          .values = group->gradients,
                                                                          .found = found},
                                                error);
}

status parameters_reset(struct parameters *group, struct error *error)
{
    struct backend *backend = group->backend;
    assert(group->gradients != NULL);
    TRY(backend->ops->zero(backend, group->gradients, group->values_count * sizeof(float), error));
    TRY(backend->ops->zero(backend, group->first_moment, group->values_count * sizeof(float), error));
    if (group->second_moment != NULL)
        TRY(backend->ops->zero(backend, group->second_moment, group->values_count * sizeof(float), error));
    return backend->ops->zero(backend, group->steps, group->segments * sizeof(int32_t), error);
}
