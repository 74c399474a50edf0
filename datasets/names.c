/* A dataset without images, with class names and templates from an adapters file. */
#include <stdlib.h>
#include <string.h>

#include "datasets/readers/reader.h"

static const struct dataset_reader names_alone = {.name = "class names", .source = "the caller"};

static status copy_names(struct strings *copy, const char *const *names, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++)
        TRY(strings_add(copy, names[i], strlen(names[i]), error));
    return OK;
}

status dataset_of_names(struct dataset **result, const char *const *classes, size_t class_count,
                        const char *const *templates, size_t template_count, struct error *error)
{
    struct dataset *dataset = calloc(1, sizeof *dataset);
    if (dataset == NULL)
        return error_set(error, ERROR_MEMORY, "no memory for %zu classes", class_count);
    dataset->reader = &names_alone;
    status copied = copy_names(&dataset->classes, classes, class_count, error);
    if (copied == OK)
        copied = copy_names(&dataset->templates, templates, template_count, error);
    if (copied != OK) {
        dataset_close(dataset);
        return copied;
    }
    *result = dataset;
    return OK;
}
