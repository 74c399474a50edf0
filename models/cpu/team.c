/* Members meet, each sums its part of the values over all members in their order, and they meet again. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "models/cpu/cpu.h"

struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t complete;
    size_t size, arrived;
    uint64_t number;
    bool aborted;
    void *values[]; /* of each member */
};

status cpu_bind(struct backend *backend, struct error *error)
{
    (void)backend;
    (void)error;
    return OK;
}

status cpu_team_create(struct backend *const *members, struct team *team, struct error *error)
{
    (void)members;
    struct meeting *meeting = calloc(1, sizeof *meeting + team->size * sizeof *meeting->values);
    if (meeting == NULL)
        return error_set(error, ERROR_MEMORY, "cpu backend: no memory for a team of %zu", team->size);
    meeting->size = team->size;
    pthread_mutex_init(&meeting->mutex, NULL);
    pthread_cond_init(&meeting->complete, NULL);
    team->owner = meeting;
    return OK;
}

/* False when the team was aborted. */
static bool meet(struct meeting *meeting)
{
    pthread_mutex_lock(&meeting->mutex);
    uint64_t number = meeting->number;
    if (++meeting->arrived == meeting->size) {
        meeting->arrived = 0;
        meeting->number++;
        pthread_cond_broadcast(&meeting->complete);
    }
    while (meeting->number == number && !meeting->aborted)
        pthread_cond_wait(&meeting->complete, &meeting->mutex);
    bool met = meeting->number != number;
    pthread_mutex_unlock(&meeting->mutex);
    return met;
}

static void reduce_floats(const struct meeting *meeting, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        float total = ((const float *)meeting->values[0])[i];
        for (size_t m = 1; m < meeting->size; m++)
            total += ((const float *)meeting->values[m])[i];
        for (size_t m = 0; m < meeting->size; m++)
            ((float *)meeting->values[m])[i] = total;
    }
}

static void reduce_integers(const struct meeting *meeting, enum reduction reduction, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        int32_t total = ((const int32_t *)meeting->values[0])[i];
        for (size_t m = 1; m < meeting->size; m++) {
            int32_t value = ((const int32_t *)meeting->values[m])[i];
            total = reduction == SUM_INTEGERS ? total + value : value > total ? value : total;
        }
        for (size_t m = 0; m < meeting->size; m++)
            ((int32_t *)meeting->values[m])[i] = total;
    }
}

status cpu_all_reduce(struct backend *backend, const struct all_reduce *o, struct error *error)
{
    (void)backend;
    struct meeting *meeting = o->team->owner;
    size_t first = o->member * o->n / meeting->size, last = (o->member + 1) * o->n / meeting->size;
    assert(o->member < meeting->size);
    meeting->values[o->member] = o->values;
    bool met = meet(meeting);
    if (met && o->reduction == SUM_FLOATS)
        reduce_floats(meeting, first, last);
    else if (met)
        reduce_integers(meeting, o->reduction, first, last);
    return met && meet(meeting) ? OK : error_set(error, ERROR_STOPPED, "cpu backend: the team was given up");
}

void cpu_team_abort(struct backend *backend, struct team *team)
{
    (void)backend;
    struct meeting *meeting = team->owner;
    pthread_mutex_lock(&meeting->mutex);
    meeting->aborted = true;
    pthread_cond_broadcast(&meeting->complete);
    pthread_mutex_unlock(&meeting->mutex);
}

void cpu_team_destroy(struct backend *backend, struct team *team)
{
    (void)backend;
    struct meeting *meeting = team->owner;
    if (meeting == NULL)
        return;
    pthread_cond_destroy(&meeting->complete);
    pthread_mutex_destroy(&meeting->mutex);
    free(meeting);
    *team = (struct team){0};
}
