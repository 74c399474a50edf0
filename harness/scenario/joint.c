#include "harness/scenario/joint.h"
#include "core/alloc.h"

#include <stdlib.h>

static status gather(struct data *data, struct error *error)
{
    struct task_settings *s = &data->joint.settings;
    s->iterations = s->schedule_end = s->epoch_length = 0;
    for (size_t k = 0; k < data->task_count; k++) {
        s->iterations += data->tasks[k].settings.iterations;
        s->schedule_end += data->tasks[k].settings.schedule_end;
        s->epoch_length += data->tasks[k].settings.epoch_length;
    }
    if (s->warmup_epochs > 0)
        s->warmup = s->warmup_epochs * s->epoch_length;
    const struct dataset **parts = xcalloc(data->task_count, sizeof *parts);
    for (size_t k = 0; k < data->task_count; k++)
        parts[k] = data->tasks[k].dataset;
    dataset_close(data->joint.dataset);
    data->joint.dataset = NULL;
    status result = dataset_join(&data->joint.dataset, parts, data->task_count, data->shared_classes, error);
    free(parts);
    return result;
}

status joint_open(struct data *data, const struct options *training, struct error *error)
{
    struct task *joint = &data->joint;
    joint->index = data->task_count - 1;
    joint->settings = training_settings_of(training);
    joint->settings.name = "all tasks";
    return gather(data, error);
}

status joint_gather(struct data *data, struct error *error)
{
    return data->joint.dataset != NULL ? gather(data, error) : OK;
}

size_t joint_first(const struct data *data, size_t k)
{
    return data->joint.dataset != NULL && k < data->joint.index ? data->joint.index : k;
}

const struct task *joint_or(const struct data *data, size_t k)
{
    return data->joint.dataset != NULL && k == data->joint.index ? &data->joint : &data->tasks[k];
}
