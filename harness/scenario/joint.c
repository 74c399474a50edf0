#include "harness/scenario/joint.h"
#include "core/alloc.h"

#include <stdlib.h>

static status gather(struct experiment *e, struct error *error)
{
    struct task_settings *s = &e->data.joint.settings;
    s->iterations = s->schedule_end = s->epoch_length = 0;
    for (size_t k = 0; k < e->data.task_count; k++) {
        s->iterations += e->data.tasks[k].settings.iterations;
        s->schedule_end += e->data.tasks[k].settings.schedule_end;
        s->epoch_length += e->data.tasks[k].settings.epoch_length;
    }
    if (s->warmup_epochs > 0)
        s->warmup = s->warmup_epochs * s->epoch_length;
    const struct dataset **parts = xcalloc(e->data.task_count, sizeof *parts);
    for (size_t k = 0; k < e->data.task_count; k++)
        parts[k] = e->data.tasks[k].dataset;
    dataset_close(e->data.joint.dataset);
    e->data.joint.dataset = NULL;
    status result = dataset_join(&e->data.joint.dataset, parts, e->data.task_count, error);
    free(parts);
    return result;
}

status joint_open(struct experiment *e, struct error *error)
{
    struct task *joint = &e->data.joint;
    joint->index = e->data.task_count - 1;
    joint->settings = training_settings_of(suite_options(e->suite, "training"));
    joint->settings.name = "all tasks";
    TRY(e->model.head->join_tasks(e, joint, error));
    return gather(e, error);
}

status joint_gather(struct experiment *e, struct error *error)
{
    return e->data.joint.dataset != NULL ? gather(e, error) : OK;
}

size_t joint_first(const struct data *data, size_t k)
{
    return data->joint.dataset != NULL && k < data->joint.index ? data->joint.index : k;
}

const struct task *joint_or(const struct data *data, size_t k)
{
    return data->joint.dataset != NULL && k == data->joint.index ? &data->joint : &data->tasks[k];
}
