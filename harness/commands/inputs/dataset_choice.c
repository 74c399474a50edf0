#include "harness/commands/inputs/dataset_choice.h"

#include <string.h>

#include "core/scope.h"

/* Readers without the option have nothing to choose; setting it is an error. */
static status set_option(struct options *values, const char *dataset, const char *name, const char *value,
                         struct error *error)
{
    if (value == NULL)
        return OK;
    const struct option *option = options_find(options_table(values), name);
    if (option != NULL)
        return options_set(values, name, value, "command line", error);
    if (strcmp(value, "torchvision") == 0 || strcmp(name, "on_missing") == 0)
        return OK;
    return error_set(error, ERROR_ARGUMENT, "command line: the dataset %s has no option %s, found \"%s\"", dataset,
                     name, value);
}

status dataset_choice_open(const struct dataset_choice *choice, const struct log *log, struct dataset **dataset,
                           struct error *error)
{
    const struct dataset_reader *reader;
    SCOPED(options_destroy_at) struct options *values = NULL;
    *dataset = NULL;
    TRY(dataset_reader_find(&reader, choice->name, error));
    TRY(options_create(&values, reader->options, error));
    TRY(set_option(values, choice->name, "on_missing", choice->skip_missing ? "skip" : NULL, error));
    TRY(set_option(values, choice->name, "path", choice->path, error));
    TRY(set_option(values, choice->name, "split", choice->split, error));
    return dataset_open(dataset, choice->name, choice->root, values, log, error);
}
