/* A dataset without images, with class names and templates from an adapters file. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "datasets/readers/reader.h"

static const struct dataset_reader names_alone = {.name = "class names", .source = "the caller"};

static void copy_names(struct strings *copy, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        strings_add(copy, names[i], strlen(names[i]));
}

void dataset_of_names(struct dataset **result, const char *const *classes, size_t class_count,
                      const char *const *templates, size_t template_count)
{
    struct dataset *dataset = xcalloc(1, sizeof *dataset);
    dataset->reader = &names_alone;
    copy_names(&dataset->classes, classes, class_count);
    copy_names(&dataset->templates, templates, template_count);
    *result = dataset;
}
