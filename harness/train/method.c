#include "harness/train/method.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "harness/methods/methods.h"
#include "harness/run/experiment.h"

#define ENTRY(name) &method_##name,
static const struct method *const methods[] = {METHODS(ENTRY)};
#undef ENTRY

enum { COUNT = sizeof methods / sizeof *methods };

const struct method *method_at(size_t index)
{
    return index < COUNT ? methods[index] : NULL;
}

status method_find(const struct method **method, const char *name, struct error *error)
{
    const char *names[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        names[i] = methods[i]->name;
        if (strcmp(names[i], name) == 0) {
            *method = methods[i];
            return OK;
        }
    }
    return error_unknown_word(error, "suite", "method", name, names, COUNT);
}

/* Sections that belong to the methods that name them. */
static bool is_optional(const char *section)
{
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < METHOD_SECTIONS && methods[i]->sections[k] != NULL; k++)
            if (strcmp(methods[i]->sections[k], section) == 0)
                return true;
    return false;
}

bool method_uses(const struct method *method, const struct options *options, const char *section)
{
    if (strcmp(section, "adapter") == 0)
        return (method->groups(options) & GROUP_ADAPTERS) != 0;
    for (size_t k = 0; k < METHOD_SECTIONS && method->sections[k] != NULL; k++)
        if (strcmp(method->sections[k], section) == 0)
            return true;
    return !is_optional(section);
}

status method_open(struct experiment *e, struct error *error)
{
    const struct method *method = e->settings.method;
    e->method = (struct method_run){.experiment = e,
                                    .options = e->settings.method_options,
                                    .memory = &e->model,
                                    .task_memory = &e->per_task,
                                    .step_memory = &e->step,
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
