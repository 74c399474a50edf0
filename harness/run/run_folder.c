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

char *run_folder(const struct experiment *e)
{
    return path_format("%s/%s-%.12s/seed%llu", e->settings.folder, suite_name(e->suite), e->identity,
                       (unsigned long long)e->seed);
}
