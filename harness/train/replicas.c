#include "harness/train/replicas.h"

#include <pthread.h>
#include <stdlib.h>

#include "adapters/statistics.h"
#include "core/alloc.h"
#include "core/scope.h"
#include "harness/model/model.h"
#include "harness/train/trainer.h"

struct rank {
    struct replicas *replicas;
    struct method_run *run; /* the leader's, or &own */
    struct method_run own;
    struct model model; /* of own */
    struct training training;
    pthread_t thread;
    bool started;
    status result;
    struct error error;
};

struct replicas {
    struct method_run *leader;
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

/* The same model with the same method, on the GPU `number` places after the leader's; tasks and cache are shared. */
static status open_rank(struct rank *rank, size_t number, struct error *error)
{
    const struct method_run *leader = rank->replicas->leader;
    rank->model = (struct model){.settings = leader->model->settings,
                                 .seed = leader->model->seed,
                                 .groups = leader->model->groups,
                                 .tokenizer = leader->model->tokenizer,
                                 .evaluation_batch = leader->model->evaluation_batch};
    rank->model.settings.backend.device += number;
    rank->run = &rank->own;
    TRY(model_open(&rank->model, error));
    TRY(model_open_head(&rank->model, leader->data->class_count, error));
    return method_open(rank->run, &rank->model, leader->data, error);
}

static status open_ranks(struct replicas *r, struct error *error)
{
    struct backend *backends[GPUS];
    r->ranks[0] = (struct rank){.replicas = r, .run = r->leader};
    backends[0] = r->leader->model->backend;
    for (size_t i = 1; i < r->size; i++) {
        r->ranks[i].replicas = r;
        TRY(open_rank(&r->ranks[i], i, error));
        backends[i] = r->ranks[i].model.backend;
    }
    r->group.size = r->size;
    TRY(backends[0]->ops->process_group_create(backends, &r->group, error));
    for (size_t i = 0; i < r->size; i++)
        r->ranks[i].run->model->work =
            (struct distributed_work){.replicas = r, .group = &r->group, .rank = i, .ranks = r->size};
    return backends[0]->ops->bind(backends[0], error);
}

status replicas_open(struct method_run *leader, struct error *error)
{
    struct model *model = leader->model;
    size_t size = model->settings.gpus;
    if (size <= 1 || model->groups == GROUPS_NONE)
        return OK;
    if (!model->backend->asynchronous)
        log_warn(model->log,
                 "run.gpus is %zu, but there is no GPU, so the replicas share the cores, which is no faster", size);
    struct replicas *r = xcalloc(1, sizeof *r);
    *r = (struct replicas){.leader = leader, .size = size, .ranks = xcalloc(size, sizeof *r->ranks)};
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->moved, NULL);
    model->work.replicas = r;
    status opened = open_ranks(r, error);
    if (opened != OK) {
        error_context(error, "run.gpus=%zu", size);
        replicas_close(model);
    }
    return opened;
}

void replicas_close(struct model *leader)
{
    struct replicas *r = leader->work.replicas;
    struct error ignored;
    if (r == NULL)
        return;
    leader->backend->ops->process_group_destroy(leader->backend, &r->group);
    for (size_t i = 1; i < r->size; i++) {
        method_close(&r->ranks[i].own);
        model_close(&r->ranks[i].model);
    }
    leader->backend->ops->bind(leader->backend, &ignored);
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->mutex);
    free(r->ranks);
    free(r);
    leader->work = (struct distributed_work){0};
}

struct method_run *replicas_at(const struct replicas *r, size_t rank)
{
    return rank < r->size ? r->ranks[rank].run : NULL;
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
static status copy_counts(const struct copying *c, const struct adapters *to, const struct adapters *from,
                          enum tower tower, struct error *error)
{
    struct adapter_counts use = adapters_counts(from, tower), copies = adapters_counts(to, tower);
    struct statistic a, b;
    if (use.n == 0)
        return OK;
    TRY(copy_memory(c, copies.counts, use.counts, use.n * sizeof(int32_t), error));
    TRY(copy_memory(c, copies.frozen, use.frozen, use.n * sizeof(int32_t), error));
    for (size_t i = 0; adapters_statistic(from, tower, i, &a) && adapters_statistic(to, tower, i, &b); i++)
        TRY(copy_memory(c, b.data, a.data, a.n * sizeof(float), error));
    return OK;
}

static status copy_state(const struct copying *c, const struct model *to, const struct model *from, struct error *error)
{
    struct trained_group source, target;
    TRY(copy_memory(c, to->guard, from->guard, sizeof *from->guard, error));
    for (size_t i = 0; trained_group_at(from, i, &source) && trained_group_at(to, i, &target); i++)
        TRY(copy_group(c, target.parameters, source.parameters, error));
    for (int t = 0; from->groups & GROUP_ADAPTERS && t < TOWERS; t++)
        TRY(copy_counts(c, to->adapters, from->adapters, (enum tower)t, error));
    return OK;
}

/* The state of the method is copied as it is saved in a resume file, but through memory. */
static status copy_kept(struct replicas *r, struct error *error)
{
    const struct method *method = r->leader->model->settings.method;
    SCOPED(archive_close_at) struct archive *archive = NULL;
    if (method->keep == NULL)
        return OK;
    archive_create(&archive);
    struct serializer serializer = {.archive = archive, .saving = true};
    for (size_t i = 0; i < r->size; i++) {
        serializer.backend = r->ranks[i].run->model->backend;
        TRY(serializer.backend->ops->bind(serializer.backend, error));
        TRY(method->keep(r->ranks[i].run, &serializer, error));
        serializer.saving = false;
    }
    return OK;
}

static status copy_to_ranks(struct replicas *r, struct error *error)
{
    OWNED void *chunk = xmalloc(CHUNK);
    struct copying c = {.from = r->leader->model->backend, .chunk = chunk};
    for (size_t i = 1; i < r->size; i++) {
        c.to = r->ranks[i].model.backend;
        TRY(copy_state(&c, &r->ranks[i].model, r->leader->model, error));
    }
    TRY(copy_kept(r, error));
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
        r->leader->model->backend->ops->process_group_abort(r->leader->model->backend, &r->group);
    pthread_mutex_lock(&r->mutex);
    r->left = r->left || result != OK;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->mutex);
}

static void *follow(void *context)
{
    struct rank *rank = context;
    struct backend *backend = rank->run->model->backend;
    rank->result = backend->ops->bind(backend, &rank->error);
    if (rank->result == OK)
        rank->result = rank->replicas->body(&rank->training, &rank->error);
    leave(rank->replicas, rank->result);
    return NULL;
}

/* Only the leader's changes are recorded. */
static status forget_changes(void *context, const struct step_report *report, struct error *error)
{
    struct method_run *run = context;
    expert_changes_clear(&run->changes);
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
        rank->training = (struct training){.run = rank->run,
                                           .task = training->task,
                                           .first = training->first,
                                           .after = forget_changes,
                                           .context = rank->run};
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

float replicas_weight(const struct model *model)
{
    return model->work.ranks > 0 ? 1.0f / (float)model->work.ranks : 1.0f;
}

static status clear_counts(struct model *model, enum tower tower, struct error *error)
{
    struct adapter_counts use = adapters_counts(model->adapters, tower);
    if (use.n == 0)
        return OK;
    return model->backend->ops->zero(model->backend, use.counts, use.n * sizeof(int32_t), error);
}

/* Those of a task, or those of the leader. */
static status clear_statistics(struct model *model, enum tower tower, bool of_leader, struct error *error)
{
    struct statistic s;
    for (size_t i = 0; adapters_statistic(model->adapters, tower, i, &s); i++)
        if (of_leader ? s.of_leader : s.of_task)
            TRY(model->backend->ops->zero(model->backend, s.data, s.n * sizeof(float), error));
    return OK;
}

status replicas_begin_step(struct model *model, bool compute, struct error *error)
{
    bool distributed = model->work.group != NULL && model->adapters != NULL;
    if (distributed && model->work.rank > 0) { /* the leader's counts include the previous steps */
        TRY(clear_counts(model, TOWER_IMAGE, error));
        TRY(clear_statistics(model, TOWER_IMAGE, false, error));
    }
    if (compute)
        return OK;
    for (int t = 0; distributed && t < TOWERS; t++) {
        const struct parameters *group = model->adapters->towers[t].parameters;
        TRY(model->backend->ops->zero(model->backend, group->flags, group->flags_count * sizeof *group->flags, error));
    }
    return model->backend->ops->zero(model->backend, model->loss, LOSS_TERMS * sizeof *model->loss, error);
}

static status reduce(struct model *model, enum reduction reduction, void *values, size_t n, struct error *error)
{
    return model->backend->ops->all_reduce(
        model->backend,
        &(struct all_reduce){
            .group = model->work.group, .rank = model->work.rank, .reduction = reduction, .values = values, .n = n},
        error);
}

static status reduce_statistics(struct model *model, enum tower tower, struct error *error)
{
    struct statistic s;
    if (model->work.rank > 0)
        TRY(clear_statistics(model, tower, true, error));
    for (size_t i = 0; adapters_statistic(model->adapters, tower, i, &s); i++)
        if (s.of_task || s.of_leader)
            TRY(reduce(model, s.integers ? SUM_INTEGERS : SUM_FLOATS, s.data, s.n, error));
    return OK;
}

/* Every rank encodes all prompts, so only the leader's counts of the text tower are used. */
static status reduce_counts(struct model *model, enum tower tower, struct error *error)
{
    struct adapter_counts use = adapters_counts(model->adapters, tower);
    const struct parameters *group = model->adapters->towers[tower].parameters;
    if (use.n == 0)
        return OK;
    if (tower == TOWER_TEXT && model->work.rank > 0) {
        TRY(clear_counts(model, tower, error));
        TRY(clear_statistics(model, tower, false, error));
    }
    TRY(reduce_statistics(model, tower, error));
    TRY(reduce(model, SUM_INTEGERS, use.counts, use.n, error));
    return reduce(model, MAX_INTEGERS, group->flags, group->flags_count, error);
}

status replicas_share(struct model *model, struct error *error)
{
    if (model->work.group == NULL)
        return OK;
    TRY(reduce(model, SUM_FLOATS, model->loss, LOSS_TERMS, error));
    for (int t = 0; model->groups & GROUP_ADAPTERS && t < TOWERS; t++)
        TRY(reduce_counts(model, (enum tower)t, error));
    struct trained_group group;
    for (size_t i = 0; trained_group_at(model, i, &group); i++)
        TRY(reduce(model, SUM_FLOATS, group.parameters->gradients, group.parameters->values_count, error));
    return OK;
}
