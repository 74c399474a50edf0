#include "harness/commands/inputs/classifier_choice.h"

#include "harness/heads/weights.h"
#include "models/files/weights_file.h"

static status check(const struct classifier_choice *choice, const char *weights, struct error *error)
{
    size_t tasks = choice->metadata.task_count, named = tasks > 0 ? choice->metadata.tasks[0].classes.count : 0;
    if (choice->about.classes == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: expected a classifier, found an image tower without a head",
                         weights);
    if (tasks > 1 || (tasks == 1 && named != choice->about.classes))
        return error_set(error, ERROR_FORMAT, "%s: names %zu classes of %zu tasks, but its head has %zu classes",
                         weights, named, tasks, choice->about.classes);
    return OK;
}

static status read_metadata(struct classifier_choice *choice, const char *weights, struct error *error)
{
    TRY(weights_file_open_header(&choice->file, weights, error));
    TRY(adapter_metadata_read(&choice->metadata, choice->file, error));
    return check(choice, weights, error);
}

status classifier_choice_read(struct classifier_choice *choice, const char *weights, const struct clip_stated *stated,
                              struct error *error)
{
    struct vit_stated said = vit_weights_stated(stated);
    *choice = (struct classifier_choice){0};
    TRY(vit_weights_look(&choice->about, &choice->is_one, weights, &said, error));
    if (!choice->is_one)
        return OK;
    status result = read_metadata(choice, weights, error);
    if (result != OK)
        classifier_choice_free(choice);
    return result;
}

void classifier_choice_free(struct classifier_choice *choice)
{
    adapter_metadata_free(&choice->metadata);
    safetensors_close(choice->file);
    *choice = (struct classifier_choice){0};
}
