#include "harness/train/method_run.h"

#include <stdlib.h>

status method_open(struct experiment *e, struct error *error)
{
    const struct method *method = e->settings.method;
    e->method = (struct method_run){.experiment = e,
                                    .options = e->settings.method_options,
                                    .memory = &e->model.memory,
                                    .task_memory = &e->model.task_memory,
                                    .step_memory = &e->model.step_memory,
                                    .state = calloc(1, method->state_size + 1)};
    if (e->method.state == NULL)
        return error_set(error, ERROR_MEMORY, "method %s: no memory for its state", method->name);
    return method->open != NULL ? method->open(&e->method, error) : OK;
}

void method_close(struct experiment *e)
{
    if (e->method.state != NULL && e->settings.method->close != NULL)
        e->settings.method->close(&e->method);
    free(e->method.state);
    e->method = (struct method_run){0};
}
