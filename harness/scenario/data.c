#include "harness/scenario/data.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/scope.h"

size_t data_first_class(const struct data *data, const struct task *task)
{
    size_t first = 0;
    for (size_t k = 0; k < task->index && !data->shared_classes; k++)
        first += dataset_classes(data->tasks[k].dataset);
    return first;
}

static struct label_range of_tasks(const struct data *data, size_t first, size_t count)
{
    const struct task *last = &data->tasks[first + count - 1];
    return (struct label_range){data->tasks[first].first_class, last->first_class + dataset_classes(last->dataset)};
}

struct label_range data_labels(const struct data *data, enum label_space_kind space, int64_t after,
                               const struct task *task)
{
    size_t trained = (size_t)(after + 1);
    switch (space) {
    case LABEL_SPACE_ALL:
        return of_tasks(data, 0, data->task_count);
    case LABEL_SPACE_SEEN:
        return of_tasks(data, 0, trained > 0 ? trained : data->task_count);
    case LABEL_SPACE_OPEN:
        return task->index < trained ? of_tasks(data, 0, trained) : of_tasks(data, task->index, 1);
    case LABEL_SPACE_TASK:
        break;
    }
    return (struct label_range){0, dataset_classes(task->dataset)};
}

void task_describe(struct adapter_task *description, const struct task *task, bool trained)
{
    const struct dataset *dataset = task->dataset;
    description->name = task->settings.name;
    description->trained = trained;
    adapter_names_create(&description->classes, dataset_classes(dataset));
    adapter_names_create(&description->templates, dataset_templates(dataset));
    for (size_t c = 0; c < description->classes.count; c++)
        description->classes.items[c] = dataset_class_name(dataset, c);
    for (size_t t = 0; t < description->templates.count; t++)
        description->templates.items[t] = dataset_template(dataset, t);
}

static void gather(struct data *data)
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
    OWNED const struct dataset **parts = xcalloc(data->task_count, sizeof *parts);
    for (size_t k = 0; k < data->task_count; k++)
        parts[k] = data->tasks[k].dataset;
    dataset_close(data->joint.dataset);
    data->joint.dataset = dataset_join(parts, data->task_count, data->shared_classes);
}

void joint_open(struct data *data, const struct options *training)
{
    struct task *joint = &data->joint;
    joint->index = data->task_count - 1;
    joint->settings = training_settings_of(training);
    joint->settings.name = "all tasks";
    gather(data);
}

void joint_gather(struct data *data)
{
    if (data->joint.dataset != NULL)
        gather(data);
}

size_t joint_first(const struct data *data, size_t k)
{
    return data->joint.dataset != NULL && k < data->joint.index ? data->joint.index : k;
}

const struct task *joint_or(const struct data *data, size_t k)
{
    return data->joint.dataset != NULL && k == data->joint.index ? &data->joint : &data->tasks[k];
}
