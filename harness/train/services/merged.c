#include "harness/train/services/merged.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/model/model.h"

status merged_take(void *memory, size_t count, size_t size, struct error *error)
{
    void *taken = calloc(count + 1, size);
    memcpy(memory, &taken, sizeof taken);
    if (taken != NULL)
        return OK;
    return error_set(error, ERROR_MEMORY, "method: no memory for %.1f GiB of merged models",
                     (double)count * (double)size / (1 << 30));
}

static status download(const struct merged *m, float *values, struct error *error)
{
    for (const struct merged_tensor *t = m->tensor; t < m->tensor + m->tensors; t++)
        TRY(parameters_download(t->group, t->parameter, values + t->first, error));
    return OK;
}

static status upload(const struct merged *m, const float *values, struct error *error)
{
    for (const struct merged_tensor *t = m->tensor; t < m->tensor + m->tensors; t++)
        TRY(parameters_upload(t->group, t->parameter, values + t->first, error));
    return OK;
}

static void list_tensors(struct merged *m, struct parameters *group)
{
    for (size_t k = 0; k < group->count; k++) {
        GROW(m->tensor, m->tensors);
        m->tensor[m->tensors++] = (struct merged_tensor){group, &group->list[k], m->n};
        m->n += group->list[k].size;
    }
}

/* --- Hooks --- */

unsigned merged_groups(const struct options *options)
{
    return options_choice(options, "train") == 0 ? GROUPS_TOWERS : GROUP_DELTAS;
}

status merged_open(struct method_run *run, const struct merge_rule *rule, struct error *error)
{
    struct merged *m = run->state;
    struct trained_group group;
    m->rule = rule;
    for (size_t i = 0; trained_group_at(run->model, i, &group); i++)
        list_tensors(m, group.parameters);
    TRY(merged_take(&m->initial, m->n, sizeof *m->initial, error));
    TRY(merged_take(&m->trained, m->n, sizeof *m->trained, error));
    for (size_t i = 0; i < rule->sums; i++)
        TRY(merged_take(&m->sum[i], m->n, sizeof *m->sum[i], error));
    for (size_t i = 0; i < rule->counts; i++)
        TRY(merged_take(&m->count[i], m->n, sizeof *m->count[i], error));
    return download(m, m->initial, error);
}

void merged_close(struct method_run *run)
{
    struct merged *m = run->state;
    free(m->tensor);
    free(m->initial);
    free(m->trained);
    for (size_t i = 0; i < 2; i++) {
        free(m->sum[i]);
        free(m->count[i]);
    }
}

status merged_begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct model *model = run->model;
    if (model->deltas != NULL)
        TRY(deltas_begin_task(model->deltas, 0, 0, model->settings.delta.trained, error));
    return resumed ? OK : trained_groups_reset(run->model, error);
}

status merged_end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct merged *m = run->state;
    TRY(download(m, m->trained, error));
    TRY(m->rule->add(run, error));
    m->tasks++;
    return OK;
}

void merged_sum(const struct merged *m, size_t first, size_t n, float *delta)
{
    memcpy(delta, m->sum[0] + first, n * sizeof *delta);
}

static status set_tensor(const struct merged *m, const struct merged_tensor *t, double scale,
                         void (*delta)(const struct merged *, size_t, size_t, float *), struct error *error)
{
    OWNED float *values = NULL;
    size_t n = t->parameter->size;
    TRY(merged_take(&values, n, sizeof *values, error));
    delta(m, t->first, n, values);
    for (size_t i = 0; i < n; i++)
        values[i] = m->initial[t->first + i] + (float)scale * values[i];
    return parameters_upload(t->group, t->parameter, values, error);
}

status merged_set(struct method_run *run, double scale, void (*delta)(const struct merged *, size_t, size_t, float *),
                  struct error *error)
{
    const struct merged *m = run->state;
    if (delta == NULL)
        return upload(m, m->initial, error);
    for (const struct merged_tensor *t = m->tensor; t < m->tensor + m->tensors; t++)
        TRY(set_tensor(m, t, scale, delta, error));
    return OK;
}

status merged_evaluation_begin(struct method_run *run, struct error *error)
{
    const struct merged *m = run->state;
    double scale = options_real(run->options, "scale");
    return merged_set(run, scale > 0 ? scale : 1.0 / m->tasks, m->rule->delta, error);
}

status merged_evaluation_end(struct method_run *run, struct error *error)
{
    const struct merged *m = run->state;
    return upload(m, options_choice(run->options, "start") == 0 ? m->initial : m->trained, error);
}

void merged_cost(const struct method_run *run, struct method_cost *cost)
{
    const struct merged *m = run->state;
    double arrays = (double)(m->rule->sums * sizeof *m->sum[0] + m->rule->counts * sizeof *m->count[0]);
    cost->memory = (double)m->n * (double)((2 + m->rule->scratch) * sizeof *m->initial) + (double)m->n * arrays;
    cost->kept = (double)m->n * arrays;
}

/* Other ranks train, and the leader merges. */
status merged_keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct merged *m = run->state;
    char name[32];
    if (run->model->work.rank > 0)
        return OK;
    TRY(serializer_host(serializer, "merged.tasks", SAFETENSOR_I32, 1, &m->tasks, error));
    if (m->tasks == 0)
        return OK;
    for (size_t i = 0; i < m->rule->sums; i++) {
        snprintf(name, sizeof name, "merged.sum%zu", i);
        TRY(serializer_host(serializer, name, SAFETENSOR_F32, m->n, m->sum[i], error));
    }
    for (size_t i = 0; i < m->rule->counts; i++) {
        snprintf(name, sizeof name, "merged.count%zu", i);
        TRY(serializer_host(serializer, name, SAFETENSOR_U16, m->n, m->count[i], error));
    }
    return OK;
}

/* --- The unified change --- */

enum { AT_A_TIME = 4096 };

status unified_open(struct unified *u, size_t n, struct error *error)
{
    *u = (struct unified){.n = n, .values = calloc(n + 1, sizeof *u->values)};
    if (u->values != NULL)
        return OK;
    return error_set(error, ERROR_MEMORY, "no memory for a unified change of %zu values", n);
}

void unified_close(struct unified *u)
{
    for (size_t m = 0; m < u->tasks; m++)
        free(u->masks[m]);
    free(u->masks);
    free(u->rescale);
    free(u->values);
    *u = (struct unified){0};
}

/* Empty masks for new tasks. */
static status take_tasks(struct unified *u, size_t tasks, struct error *error)
{
    u->masks = xrealloc(u->masks, (tasks + 1) * sizeof *u->masks);
    u->rescale = xrealloc(u->rescale, (tasks + 1) * sizeof *u->rescale);
    for (; u->tasks < tasks; u->tasks++) {
        u->masks[u->tasks] = calloc(u->n / 8 + 1, 1);
        if (u->masks[u->tasks] == NULL)
            return error_set(error, ERROR_MEMORY, "no memory for the mask of %zu values of a task", u->n);
        u->rescale[u->tasks] = 0;
    }
    return OK;
}

bool unified_mask(const struct unified *u, size_t task, size_t value)
{
    return u->masks[task][value / 8] >> value % 8 & 1;
}

static void set_mask(struct unified *u, size_t task, size_t value, bool on)
{
    uint8_t *byte = &u->masks[task][value / 8], bit = (uint8_t)(1U << value % 8);
    *byte = (uint8_t)(on ? *byte | bit : *byte & ~bit);
}

/* deltas [tasks][count] of values first …; adds the magnitudes of each task's change and of what is left of it */
static void unify(struct unified *u, size_t first, size_t count, const float *deltas, double (*magnitudes)[2])
{
    for (size_t i = 0; i < count; i++) {
        float sum = 0, largest = 0;
        for (size_t m = 0; m < u->tasks; m++)
            sum += deltas[m * count + i];
        float sign = sum / (float)u->tasks > 0 ? 1 : -1;
        for (size_t m = 0; m < u->tasks; m++)
            largest = fmaxf(largest, deltas[m * count + i] * sign);
        for (size_t m = 0; m < u->tasks; m++) {
            bool kept = deltas[m * count + i] * sign > 0;
            set_mask(u, m, first + i, kept);
            magnitudes[m][0] += fabs((double)deltas[m * count + i]);
            magnitudes[m][1] += kept ? (double)largest : 0;
        }
        u->values[first + i] = largest * sign;
    }
}

/* Nothing is left of a task whose change is 0: it is rebuilt as 0. */
status unified_fit(struct unified *u, size_t tasks, const size_t *ends, size_t tensors,
                   void (*read)(const void *context, size_t task, size_t first, size_t count, float *delta),
                   const void *context, struct error *error)
{
    TRY(take_tasks(u, tasks, error));
    OWNED float *deltas = xmalloc(tasks * AT_A_TIME * sizeof *deltas);
    OWNED double(*of_tensor)[2] = xmalloc(tasks * sizeof *of_tensor), (*means)[2] = xcalloc(tasks, sizeof *means);
    for (size_t k = 0, first = 0; k < tensors; k++) {
        double size = (double)(ends[k] - first);
        memset(of_tensor, 0, tasks * sizeof *of_tensor);
        for (size_t count; first < ends[k]; first += count) {
            count = ends[k] - first < AT_A_TIME ? ends[k] - first : AT_A_TIME;
            for (size_t m = 0; m < tasks; m++)
                read(context, m, first, count, deltas + m * count);
            unify(u, first, count, deltas, of_tensor);
        }
        for (size_t m = 0; m < 2 * tasks && size > 0; m++)
            means[m / 2][m % 2] += of_tensor[m / 2][m % 2] / size;
    }
    for (size_t m = 0; m < tasks; m++)
        u->rescale[m] = means[m][1] > 0 ? (float)(means[m][0] / means[m][1]) : 0;
    return OK;
}

void unified_rebuild(const struct unified *u, size_t task, size_t first, size_t count, float *delta)
{
    for (size_t i = 0; i < count; i++)
        delta[i] = unified_mask(u, task, first + i) ? u->values[first + i] * u->rescale[task] : 0;
}

status unified_keep(struct unified *u, size_t tasks, const struct serializer *serializer, struct error *error)
{
    if (!serializer->saving)
        TRY(take_tasks(u, tasks, error));
    TRY(serializer_host(serializer, "unified.values", SAFETENSOR_F32, u->n, u->values, error));
    TRY(serializer_host(serializer, "unified.rescale", SAFETENSOR_F32, tasks, u->rescale, error));
    for (size_t m = 0; m < tasks; m++) {
        char name[48];
        snprintf(name, sizeof name, "unified.mask%zu", m);
        TRY(serializer_host(serializer, name, SAFETENSOR_U8, u->n / 8 + 1, u->masks[m], error));
    }
    return OK;
}
