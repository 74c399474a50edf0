#include "datasets/prompts.h"

#include <string.h>

#include "core/embedded.h"

EMBEDDED_FILES(prompt_files); /* the last one is that of any other dataset */

static void add_lines(const char *dataset, bool templates, struct strings *strings)
{
    const struct embedded_file *file = prompt_files;
    struct strings lines = {0};
    size_t length = strlen(dataset);
    while (file[1].name != NULL && (strncmp(file->name, dataset, length) != 0 || file->name[length] != '.'))
        file++;
    strings_add_lines(&lines, (const char *)file->data, file->size);
    for (size_t i = 0; i < lines.count; i++)
        if ((strstr(lines.items[i], "{}") != NULL) == templates)
            strings_add(strings, lines.items[i], strlen(lines.items[i]));
    strings_free(&lines);
}

void prompts_add_templates(const char *dataset, struct strings *templates)
{
    add_lines(dataset, true, templates);
}

void prompts_add_classes(const char *dataset, struct strings *classes)
{
    add_lines(dataset, false, classes);
}
