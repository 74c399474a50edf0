#include "harness/scenario/data.h"

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
