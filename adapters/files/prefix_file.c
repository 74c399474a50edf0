#include "adapters/files/prefix_file.h"

#include <stdio.h>
#include <stdlib.h>

enum { TASKS_MOST = 1024 };

status prefixes_save(const struct prefixes *p, const struct group_extra *extra, const char *path, struct error *error)
{
    size_t count;
    struct group_tensor *list = group_tensors_of_tasks(p->parameters, p->settings.tasks, &count);
    status result = group_tensors_save(list, count, NULL, 0, extra, path, error);
    free(list);
    return result;
}

static const struct safetensor *find(const struct safetensors *file, enum tower tower, size_t block, size_t task)
{
    char name[128];
    snprintf(name, sizeof name, PREFIX_NAME ".%zu", tower == TOWER_IMAGE ? "visual." : "", block, task);
    return safetensors_find(file, name);
}

bool prefix_file_is(const struct safetensors *file)
{
    return find(file, TOWER_IMAGE, 0, 0) != NULL || find(file, TOWER_TEXT, 0, 0) != NULL;
}

static status read_settings(const struct safetensors *file, const struct clip *clip, struct prefix_settings *s,
                            struct error *error)
{
    *s = (struct prefix_settings){0};
    for (int tower = 0; tower < TOWERS; tower++) {
        enum tower t = (enum tower)tower;
        const struct safetensor *first = find(file, t, 0, 0);
        if (first != NULL && (first->rank != 3 || first->shape[1] == 0))
            return error_set(error, ERROR_FORMAT, "%s: tensor %s: expected shape [2, keys, width], found %s",
                             safetensors_path(file), first->name, shape_text(first->rank, first->shape).text);
        s->length[t] = first != NULL ? first->shape[1] : 0;
        while (s->blocks[t] < clip->towers[t].count && find(file, t, s->blocks[t], 0) != NULL)
            s->blocks[t]++;
        while (s->tasks < TASKS_MOST && find(file, t, 0, s->tasks) != NULL)
            s->tasks++;
    }
    return OK;
}

status prefixes_open(struct prefixes **prefixes, const struct clip *clip, struct arena *arena,
                     const struct safetensors *file, struct error *error)
{
    struct prefix_settings settings;
    size_t count;
    if (*prefixes == NULL) {
        TRY(read_settings(file, clip, &settings, error));
        TRY(prefixes_create(prefixes, clip->backend, arena, &clip->dimensions, &settings, PARAMETERS_FROZEN, error));
    }
    struct parameters *group = (*prefixes)->parameters;
    struct group_tensor *list = group_tensors_of_tasks(group, (*prefixes)->settings.tasks, &count);
    status result = group_tensors_load(list, count, file, "", GROUP_COMPLETE, error);
    free(list);
    return result;
}
