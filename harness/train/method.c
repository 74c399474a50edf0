#include "harness/train/method.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "datasets/dataset.h"
#include "harness/train/guard.h"

static bool identify_folder(char content[DIGEST_SIZE], const char *path)
{
    struct dataset *dataset = NULL;
    struct dataset_identity identity;
    struct error ignored;
    bool found = dataset_of_images(&dataset, path, &ignored) == OK &&
                 dataset_identify(dataset, SPLIT_TRAIN, &identity, &ignored) == OK;
    if (found)
        memcpy(content, identity.content, DIGEST_SIZE);
    dataset_close(dataset);
    return found;
}

/* The method reports inputs that cannot be read, because it knows what it needs. */
static void note_inputs(struct method_run *run, const struct option *option)
{
    struct error ignored;
    for (size_t i = 0; option != NULL && option->name != NULL && i < METHOD_INPUTS; option++) {
        const char *path = option_is_path(option) ? options_text(run->options, option->name) : NULL;
        struct method_input input = {.option = option->name};
        if (path != NULL && (option->type == OPTION_FILE ? file_stamp_read(&input.file, path, &ignored) == OK
                                                         : identify_folder(input.images, path)))
            run->inputs[i++] = input;
    }
}

bool method_input_same(const struct method_run *run, const struct option *option, const struct file_stamp *file,
                       const char *path)
{
    char content[DIGEST_SIZE];
    for (size_t i = 0; i < METHOD_INPUTS && run->inputs[i].option != NULL; i++)
        if (strcmp(run->inputs[i].option, option->name) == 0)
            return option->type == OPTION_FILE
                       ? file_stamp_same(file, &run->inputs[i].file)
                       : identify_folder(content, path) && strcmp(content, run->inputs[i].images) == 0;
    return true;
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
