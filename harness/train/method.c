#include "harness/train/method.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "datasets/dataset.h"
#include "harness/train/guard.h"

/* The method reports inputs that cannot be read, because it knows what it needs. */
static void note_inputs(struct method_run *run, const struct option *option)
{
    struct error ignored;
    for (size_t i = 0; option != NULL && option->name != NULL && i < METHOD_INPUTS; option++) {
        bool file = option->type == OPTION_FILE;
        const char *path = file || option->type == OPTION_FOLDER ? options_text(run->options, option->name) : NULL;
        struct method_input input = {.option = option->name};
        if (path != NULL && (file ? witness_of_file : witness_of_folder)(&input.read, path, &ignored) == OK)
            run->inputs[i++] = input;
    }
}

const struct witness *method_input(const struct method_run *run, const char *option)
{
    for (size_t i = 0; i < METHOD_INPUTS && run->inputs[i].option != NULL; i++)
        if (strcmp(run->inputs[i].option, option) == 0)
            return &run->inputs[i].read;
    return NULL;
}

size_t method_whole(const struct method_run *run, const char *option)
{
    return (size_t)options_integer(run->options, option);
}

status method_open(struct method_run *run, struct model *model, struct data *data, struct error *error)
{
    const struct method *method = model->settings.method;
    *run = (struct method_run){.model = model,
                               .data = data,
                               .options = model->settings.method_options,
                               .memory = &model->memory,
                               .task_memory = &model->task_memory,
                               .step_memory = &model->step_memory,
                               .state = xcalloc(1, method->state_size + 1)};
    TRY(guard_create(model, error));
    note_inputs(run, method->options);
    return method->open != NULL ? method->open(run, error) : OK;
}

void method_close(struct method_run *run)
{
    struct error ignored;
    if (run->model == NULL)
        return;
    run->model->backend->ops->bind(run->model->backend, &ignored);
    if (run->model->settings.method->close != NULL)
        run->model->settings.method->close(run);
    free(run->state);
    expert_changes_free(&run->changes);
    free(run->effects.effects);
    *run = (struct method_run){0};
}

unsigned method_groups(const struct method *method, const struct options *options)
{
    return method->groups != NULL ? method->groups(options) : method->trains;
}
