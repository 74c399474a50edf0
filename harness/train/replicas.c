#include "harness/train/replicas.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/statistics.h"
#include "core/alloc.h"
#include "harness/heads/trained.h"
#include "harness/run/model_opening.h"
#include "harness/train/training.h"

struct rank {
    struct replicas *replicas;
    struct experiment *experiment;
    struct training training;
    pthread_t thread;
    bool started;
    status result;
    struct error error;
};

struct replicas {
    struct experiment *leader;
    struct process_group group;
    struct rank *ranks; /* ranks[0] is the leader, without a thread */
    size_t size;
    replicas_body body;
    pthread_mutex_t mutex;
    pthread_cond_t moved; /* all ranks have arrived, or one has left */
    size_t arrived;
    uint64_t steps;
    bool left;
};

/* --- Opening --- */

static status open_ranks(struct replicas *r, struct error *error)
{
    struct backend *backends[GPUS];
    r->ranks[0] = (struct rank){.replicas = r, .experiment = r->leader};
    backends[0] = r->leader->model.backend;
    for (size_t i = 1; i < r->size; i++) {
        r->ranks[i].replicas = r;
        TRY(model_open_replica(&r->ranks[i].experiment, r->leader, i, error));
        backends[i] = r->ranks[i].experiment->model.backend;
    }
    r->group.size = r->size;
    TRY(backends[0]->ops->process_group_create(backends, &r->group, error));
    for (size_t i = 0; i < r->size; i++) {
        struct experiment *e = r->ranks[i].experiment;
        e->work = (struct distributed_work){.group = &r->group, .rank = i, .ranks = r->size};
        e->replicas = r;
    }
    return backends[0]->ops->bind(backends[0], error);
}

status replicas_open(struct experiment *leader, struct error *error)
{
    size_t size = leader->settings.gpus;
    if (size <= 1 || leader->model.groups == GROUPS_NONE)
        return OK;
    if (!leader->model.backend->asynchronous)
        log_warn(leader->log,
                 "run.gpus is %zu, but there is no GPU, so the replicas share the cores, which is no faster", size);
    struct replicas *r = xcalloc(1, sizeof *r);
    *r = (struct replicas){.leader = leader, .size = size, .ranks = xcalloc(size, sizeof *r->ranks)};
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->moved, NULL);
    leader->replicas = r;
    status opened = open_ranks(r, error);
    if (opened != OK) {
        error_context(error, "run.gpus=%zu", size);
        replicas_close(leader);
    }
    return opened;
}

void replicas_close(struct experiment *leader)
{
    struct replicas *r = leader->replicas;
    struct error ignored;
    if (r == NULL)
        return;
    leader->model.backend->ops->process_group_destroy(leader->model.backend, &r->group);
    for (size_t i = 1; r->ranks != NULL && i < r->size; i++)
        model_close_replica(r->ranks[i].experiment);
    leader->model.backend->ops->bind(leader->model.backend, &ignored);
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->mutex);
    free(r->ranks);
    free(r);
    leader->replicas = NULL;
    leader->work = (struct distributed_work){0};
}

struct experiment *replicas_at(const struct replicas *r, size_t rank)
{
    return rank < r->size ? r->ranks[rank].experiment : NULL;
}

/* --- State of the leader, to another rank --- */

struct copying {
    struct backend *from, *to;
    void *chunk; /* on the host */
};
enum { CHUNK = 16 << 20 };

static status copy_memory(const struct copying *c, void *to, const void *from, size_t bytes, struct error *error)
{
    for (size_t done = 0; done < bytes;) {
        size_t part = bytes - done < CHUNK ? bytes - done : CHUNK;
        TRY(c->from->ops->bind(c->from, error));
        TRY(c->from->ops->download(c->from, c->chunk, (const char *)from + done, part, error));
        TRY(c->to->ops->bind(c->to, error));
        TRY(c->to->ops->upload(c->to, (char *)to + done, c->chunk, part, error));
        done += part;
    }
    return OK;
}

static status copy_group(const struct copying *c, struct parameters *to, const struct parameters *from,
                         struct error *error)
{
    size_t bytes = from->values_count * sizeof(float);
    TRY(copy_memory(c, parameters_write_all(to), from->values, bytes, error));
    TRY(copy_memory(c, to->first_moment, from->first_moment, bytes, error));
    if (from->second_moment != NULL)
        TRY(copy_memory(c, to->second_moment, from->second_moment, bytes, error));
    TRY(copy_memory(c, to->steps, from->steps, from->segments * sizeof *from->steps, error));
    TRY(copy_memory(c, to->flags, from->flags, from->flags_count * sizeof *from->flags, error));
    return c->to->ops->zero(c->to, to->gradients, bytes, error);
}

/* The state of adapters besides their parameter groups. */
static status copy_marks(const struct copying *c, const struct adapters *to, const struct adapters *from,
                         enum tower tower, struct error *error)
{
    struct adapter_marks marks = adapters_marks(from, tower), copies = adapters_marks(to, tower);
    struct statistic a, b;
    if (marks.n == 0)
        return OK;
    TRY(copy_memory(c, copies.counts, marks.counts, marks.n * sizeof(int32_t), error));
    TRY(copy_memory(c, copies.frozen, marks.frozen, marks.n * sizeof(int32_t), error));
    for (size_t i = 0; adapters_statistic(from, tower, i, &a) && adapters_statistic(to, tower, i, &b); i++)
        TRY(copy_memory(c, b.data, a.data, a.n * sizeof(float), error));
    return OK;
}

static status copy_state(const struct copying *c, struct experiment *to, struct experiment *from, struct error *error)
{
    struct trained_group source, target;
    TRY(copy_memory(c, to->model.guard, from->model.guard, sizeof *from->model.guard, error));
    for (size_t i = 0; trained_group_at(from, i, &source) && trained_group_at(to, i, &target); i++)
        TRY(copy_group(c, target.parameters, source.parameters, error));
    for (int t = 0; from->model.groups & GROUP_ADAPTERS && t < TOWERS; t++)
        TRY(copy_marks(c, to->model.adapters, from->model.adapters, (enum tower)t, error));
    return OK;
}

/* The state of the method is copied as it is saved in a resume file, but through memory. */
static status pass_to_ranks(struct replicas *r, struct archive *archive, struct error *error)
{
    const struct method *method = r->leader->settings.method;
    struct serializer serializer = {.archive = archive, .backend = r->leader->model.backend, .saving = true};
    TRY(serializer.backend->ops->bind(serializer.backend, error));
    TRY(method->keep(&r->leader->method, &serializer, error));
    serializer.saving = false;
    for (size_t i = 1; i < r->size; i++) {
        struct experiment *e = r->ranks[i].experiment;
        serializer.backend = e->model.backend;
        TRY(e->model.backend->ops->bind(e->model.backend, error));
        TRY(method->keep(&e->method, &serializer, error));
    }
    return OK;
}

static status copy_kept(struct replicas *r, struct error *error)
{
    struct archive *archive;
    if (r->leader->settings.method->keep == NULL)
        return OK;
    archive_create(&archive);
    status result = pass_to_ranks(r, archive, error);
    archive_close(archive);
    return result;
}

static status copy_to_ranks(struct replicas *r, struct error *error)
{
    struct copying c = {.from = r->leader->model.backend, .chunk = xmalloc(CHUNK)};
    status result = OK;
    for (size_t i = 1; result == OK && i < r->size; i++) {
        c.to = r->ranks[i].experiment->model.backend;
        result = copy_state(&c, r->ranks[i].experiment, r->leader, error);
    }
    free(c.chunk);
    if (result == OK)
        result = copy_kept(r, error);
    TRY(result);
    return c.from->ops->bind(c.from, error);
}

/* --- Together --- */

bool replicas_agree(struct replicas *r)
{
    pthread_mutex_lock(&r->mutex);
    uint64_t step = r->steps;
    if (!r->left && ++r->arrived == r->size) {
        r->arrived = 0;
        r->steps++;
        pthread_cond_broadcast(&r->moved);
    }
    while (r->steps == step && !r->left)
        pthread_cond_wait(&r->moved, &r->mutex);
    bool agreed = r->steps != step;
    pthread_mutex_unlock(&r->mutex);
    return agreed;
}

/* A rank that ends early wakes the others; after a failure the process group is aborted, so that no rank waits. */
static void leave(struct replicas *r, status result)
{
    if (result != OK && result != ERROR_STOPPED)
        r->leader->model.backend->ops->process_group_abort(r->leader->model.backend, &r->group);
    pthread_mutex_lock(&r->mutex);
    r->left = r->left || result != OK;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->mutex);
}

static void *follow(void *context)
{
    struct rank *rank = context;
    struct backend *backend = rank->experiment->model.backend;
    rank->result = backend->ops->bind(backend, &rank->error);
    if (rank->result == OK)
        rank->result = rank->replicas->body(&rank->training, &rank->error);
    leave(rank->replicas, rank->result);
    return NULL;
}

/* Only the leader's changes are recorded. */
static status forget_changes(void *context, const struct step_report *report, struct error *error)
{
    struct experiment *e = context;
    (void)report;
    (void)error;
    expert_changes_clear(&e->changes);
    return OK;
}

status replicas_start(struct replicas *r, const struct training *training, replicas_body body, struct error *error)
{
    if (r == NULL)
        return OK;
    TRY(copy_to_ranks(r, error));
    r->arrived = 0;
    r->left = false;
    r->body = body;
    for (size_t i = 1; i < r->size; i++) {
        struct rank *rank = &r->ranks[i];
        rank->training = (struct training){.experiment = rank->experiment,
                                           .task = training->task,
                                           .first = training->first,
                                           .after = forget_changes,
                                           .context = rank->experiment};
        int number = pthread_create(&rank->thread, NULL, follow, rank);
        rank->started = number == 0;
        if (number != 0)
            return replicas_finish(
                r, error_errno(error, number, "replicas: cannot start thread %zu of %zu", i, r->size - 1), error);
    }
    return OK;
}

status replicas_finish(struct replicas *r, status result, struct error *error)
{
    if (r == NULL)
        return result;
    leave(r, result);
    for (size_t i = 1; i < r->size; i++) {
        struct rank *rank = &r->ranks[i];
        if (!rank->started)
            continue;
        pthread_join(rank->thread, NULL);
        rank->started = false;
        if (rank->result == OK || rank->result == ERROR_STOPPED || (result != OK && result != ERROR_STOPPED))
            continue;
        result = rank->result;
        *error = rank->error;
    }
    return result;
}

/* --- Within a step --- */

float replicas_weight(const struct experiment *e)
{
    return e->work.ranks > 0 ? 1.0f / (float)e->work.ranks : 1.0f;
}

static status clear_counts(struct experiment *e, enum tower tower, struct error *error)
{
    struct adapter_marks marks = adapters_marks(e->model.adapters, tower);
    if (marks.n == 0)
        return OK;
    return e->model.backend->ops->zero(e->model.backend, marks.counts, marks.n * sizeof(int32_t), error);
}

static status clear_statistics(struct experiment *e, enum tower tower, struct error *error)
{
    struct statistic s;
    for (size_t i = 0; adapters_statistic(e->model.adapters, tower, i, &s); i++)
        if (s.integers)
            TRY(e->model.backend->ops->zero(e->model.backend, s.data, s.n * sizeof(float), error));
    return OK;
}

status replicas_begin_step(struct experiment *e, bool compute, struct error *error)
{
    if (e->work.group == NULL || e->model.adapters == NULL)
        return compute ? OK
                       : e->model.backend->ops->zero(e->model.backend, e->model.loss,
                                                     LOSS_TERMS * sizeof *e->model.loss, error);
    if (e->work.rank > 0) { /* the leader's counts include the previous steps */
        TRY(clear_counts(e, TOWER_IMAGE, error));
        TRY(clear_statistics(e, TOWER_IMAGE, error));
    }
    if (compute)
        return OK;
    for (int t = 0; t < TOWERS; t++) {
        const struct parameters *group = e->model.adapters->towers[t].parameters;
        TRY(e->model.backend->ops->zero(e->model.backend, group->flags, group->flags_count * sizeof *group->flags,
                                        error));
    }
    return e->model.backend->ops->zero(e->model.backend, e->model.loss, LOSS_TERMS * sizeof *e->model.loss, error);
}

static status reduce(struct experiment *e, enum reduction reduction, void *values, size_t n, struct error *error)
{
    return e->model.backend->ops->all_reduce(
        e->model.backend,
        &(struct all_reduce){
            .group = e->work.group, .rank = e->work.rank, .reduction = reduction, .values = values, .n = n},
        error);
}

static status clear_leaders(struct experiment *e, enum tower tower, struct error *error)
{
    struct statistic s;
    for (size_t i = 0; adapters_statistic(e->model.adapters, tower, i, &s); i++)
        if (s.of_leader)
            TRY(e->model.backend->ops->zero(e->model.backend, s.data, s.n * sizeof(float), error));
    return OK;
}

static status reduce_statistics(struct experiment *e, enum tower tower, struct error *error)
{
    struct statistic s;
    if (e->work.rank > 0)
        TRY(clear_leaders(e, tower, error));
    for (size_t i = 0; adapters_statistic(e->model.adapters, tower, i, &s); i++)
        if (s.integers || s.of_leader)
            TRY(reduce(e, s.integers ? SUM_INTEGERS : SUM_FLOATS, s.data, s.n, error));
    return OK;
}

/* Every rank encodes all prompts, so only the leader's counts of the text tower are used. */
static status reduce_marks(struct experiment *e, enum tower tower, struct error *error)
{
    struct adapter_marks marks = adapters_marks(e->model.adapters, tower);
    const struct parameters *group = e->model.adapters->towers[tower].parameters;
    if (marks.n == 0)
        return OK;
    if (tower == TOWER_TEXT && e->work.rank > 0) {
        TRY(clear_counts(e, tower, error));
        TRY(clear_statistics(e, tower, error));
    }
    TRY(reduce_statistics(e, tower, error));
    TRY(reduce(e, SUM_INTEGERS, marks.counts, marks.n, error));
    return reduce(e, MAX_INTEGERS, group->flags, group->flags_count, error);
}

status replicas_share(struct experiment *e, struct error *error)
{
    if (e->work.group == NULL)
        return OK;
    TRY(reduce(e, SUM_FLOATS, e->model.loss, LOSS_TERMS, error));
    for (int t = 0; e->model.groups & GROUP_ADAPTERS && t < TOWERS; t++)
        TRY(reduce_marks(e, (enum tower)t, error));
    struct trained_group group;
    for (size_t i = 0; trained_group_at(e, i, &group); i++)
        TRY(reduce(e, SUM_FLOATS, group.parameters->gradients, group.parameters->values_count, error));
    return OK;
}
