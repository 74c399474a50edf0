#include "harness/run/surveyor.h"

#include <stdlib.h>

#include "datasets/cache/cache_folder.h"

static void report(void *context, size_t done, size_t total)
{
    const struct surveyor *surveyor = context;
    progress_report(surveyor->progress, &(struct progress_state){.activity = "check",
                                                                 .subject = surveyor->subject.name,
                                                                 .task = surveyor->subject.number,
                                                                 .tasks = surveyor->subject.count,
                                                                 .step = done,
                                                                 .steps = total,
                                                                 .images = done});
}

static void report_bytes(void *context, size_t done, size_t total)
{
    const struct surveyor *surveyor = context;
    enum { MEGABYTE = 1 << 20 };
    progress_report(surveyor->progress, &(struct progress_state){.activity = "read",
                                                                 .subject = surveyor->subject.name,
                                                                 .step = done / MEGABYTE,
                                                                 .steps = total / MEGABYTE});
}

static bool is_stopped(void *context)
{
    const struct surveyor *surveyor = context;
    return stop_requested(surveyor->stop);
}

status surveyor_open(struct surveyor *surveyor, const struct settings *settings, const struct log *log,
                     struct progress *progress, const struct stop *stop, struct error *error)
{
    *surveyor = (struct surveyor){.progress = progress, .stop = stop};
    TRY(threads_create(&surveyor->threads, settings->threads, error));
    if (settings->cache.folder == NULL)
        surveyor->usual_folder = cache_folder_default();
    surveyor->settings = (struct survey_settings){.folder = settings->cache.folder != NULL ? settings->cache.folder
                                                                                           : surveyor->usual_folder,
                                                  .threads = surveyor->threads,
                                                  .log = log,
                                                  .warned = &surveyor->warned,
                                                  .progress = report,
                                                  .stopped = is_stopped,
                                                  .context = surveyor};
    if (surveyor->settings.folder == NULL)
        log_info(log, "neither XDG_CACHE_HOME nor HOME says where to store surveys of images, so every run decodes all "
                      "images; set run.cache_folder");
    return OK;
}

void surveyor_close(struct surveyor *surveyor)
{
    threads_destroy(surveyor->threads);
    free(surveyor->usual_folder);
    *surveyor = (struct surveyor){0};
}

status surveyor_look(struct surveyor *surveyor, struct survey *survey, struct dataset *dataset,
                     const struct surveyor_subject *subject, struct error *error)
{
    surveyor->subject = *subject;
    return dataset_survey(survey, dataset, &surveyor->settings, error);
}

status surveyor_read(struct surveyor *surveyor, struct file_digest *digest, const char *path, struct error *error)
{
    surveyor->subject = (struct surveyor_subject){.name = path};
    return file_digest_read(
        digest, path,
        &(struct file_digest_settings){
            .folder = surveyor->settings.folder, .progress = report_bytes, .stopped = is_stopped, .context = surveyor},
        error);
}
