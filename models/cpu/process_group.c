/* Ranks meet at a barrier, each sums its part of the values over all ranks in their order, and they meet again. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "models/cpu/cpu.h"

struct barrier {
    pthread_mutex_t mutex;
    pthread_cond_t complete;
    size_t size, arrived;
    uint64_t number;
    bool aborted;
    void *values[]; /* of each rank */
};

status cpu_bind(struct backend *backend, struct error *error)
{
    (void)backend;
    (void)error;
    return OK;
}

status cpu_process_group_create(struct backend *const *ranks, struct process_group *group, struct error *error)
{
    (void)error;
    (void)ranks;
    struct barrier *barrier = xcalloc(1, sizeof *barrier + group->size * sizeof *barrier->values);
    barrier->size = group->size;
    pthread_mutex_init(&barrier->mutex, NULL);
    pthread_cond_init(&barrier->complete, NULL);
    group->owner = barrier;
    return OK;
}

/* False when the group was aborted. */
static bool meet(struct barrier *barrier)
{
    pthread_mutex_lock(&barrier->mutex);
    uint64_t number = barrier->number;
    if (++barrier->arrived == barrier->size) {
        barrier->arrived = 0;
        barrier->number++;
        pthread_cond_broadcast(&barrier->complete);
    }
    while (barrier->number == number && !barrier->aborted)
        pthread_cond_wait(&barrier->complete, &barrier->mutex);
    bool met = barrier->number != number;
    pthread_mutex_unlock(&barrier->mutex);
    return met;
}

static void reduce_floats(const struct barrier *barrier, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        float total = ((const float *)barrier->values[0])[i];
        for (size_t m = 1; m < barrier->size; m++)
            total += ((const float *)barrier->values[m])[i];
        for (size_t m = 0; m < barrier->size; m++)
            ((float *)barrier->values[m])[i] = total;
    }
}

static void reduce_integers(const struct barrier *barrier, enum reduction reduction, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        int32_t total = ((const int32_t *)barrier->values[0])[i];
        for (size_t m = 1; m < barrier->size; m++) {
            int32_t value = ((const int32_t *)barrier->values[m])[i];
            total = reduction == SUM_INTEGERS ? total + value : value > total ? value : total;
        }
        for (size_t m = 0; m < barrier->size; m++)
            ((int32_t *)barrier->values[m])[i] = total;
    }
}

status cpu_all_reduce(struct backend *backend, const struct all_reduce *o, struct error *error)
{
    (void)backend;
    struct barrier *barrier = o->group->owner;
    size_t first = o->rank * o->n / barrier->size, last = (o->rank + 1) * o->n / barrier->size;
    assert(o->rank < barrier->size);
    barrier->values[o->rank] = o->values;
    bool met = meet(barrier);
    if (met && o->reduction == SUM_FLOATS)
        reduce_floats(barrier, first, last);
    else if (met)
        reduce_integers(barrier, o->reduction, first, last);
    return met && meet(barrier) ? OK : error_set(error, ERROR_STOPPED, "cpu backend: the process group was aborted");
}

void cpu_process_group_abort(struct backend *backend, struct process_group *group)
{
    (void)backend;
    struct barrier *barrier = group->owner;
    pthread_mutex_lock(&barrier->mutex);
    barrier->aborted = true;
    pthread_cond_broadcast(&barrier->complete);
    pthread_mutex_unlock(&barrier->mutex);
}

void cpu_process_group_destroy(struct backend *backend, struct process_group *group)
{
    (void)backend;
    struct barrier *barrier = group->owner;
    if (barrier == NULL)
        return;
    pthread_cond_destroy(&barrier->complete);
    pthread_mutex_destroy(&barrier->mutex);
    free(barrier);
    *group = (struct process_group){0};
}
