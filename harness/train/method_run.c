#include "harness/train/method_run.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "datasets/dataset.h"

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

status method_open(struct experiment *e, struct error *error)
{
    const struct method *method = e->settings.method;
    e->method = (struct method_run){.experiment = e,
                                    .options = e->settings.method_options,
                                    .memory = &e->model.memory,
                                    .task_memory = &e->model.task_memory,
                                    .step_memory = &e->model.step_memory,
                                    .state = xcalloc(1, method->state_size + 1)};
    note_inputs(&e->method, method->options);
    return method->open != NULL ? method->open(&e->method, error) : OK;
}

void method_close(struct experiment *e)
{
    if (e->method.state != NULL && e->settings.method->close != NULL)
        e->settings.method->close(&e->method);
    free(e->method.state);
    e->method = (struct method_run){0};
}
