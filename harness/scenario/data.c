#include "harness/scenario/data.h"

size_t data_first_class(const struct data *data, const struct task *task)
{
    size_t first = 0;
    for (size_t k = 0; k < task->index && !data->shared_classes; k++)
        first += dataset_classes(data->tasks[k].dataset);
    return first;
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
