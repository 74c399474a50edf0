#include "harness/run/run_folder.h"

#include "core/file.h"

char *run_resume_file(const char *folder)
{
    return path_format("%s/resume.safetensors", folder);
}

char *run_scores_file(const char *folder)
{
    return path_format("%s/layer_scores.safetensors", folder);
}

char *run_folder(const struct run *run)
{
    return path_format("%s/%s-%.12s/seed%llu", run->model.settings.folder, suite_name(run->suite), run->identity,
                       (unsigned long long)run->model.seed);
}
