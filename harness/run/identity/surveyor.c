#include "harness/run/identity/surveyor.h"

#include <stdlib.h>

#include "core/scope.h"
#include "core/text.h"
#include "datasets/cache/cache_file.h"
#include "harness/model/tasks.h"
#include "harness/run/identity/trained_images.h"

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

status surveyor_open(struct surveyor *surveyor, const struct settings *settings, const struct log *log,
                     struct progress *progress, const struct stop *stop, struct error *error)
{
    *surveyor = (struct surveyor){.progress = progress};
    TRY(threads_create(&surveyor->threads, settings->threads, error));
    if (settings->cache.folder == NULL)
        surveyor->usual_folder = cache_folder_default();
    surveyor->settings = (struct survey_settings){.folder = settings->cache.folder != NULL ? settings->cache.folder
                                                                                           : surveyor->usual_folder,
                                                  .threads = surveyor->threads,
                                                  .log = log,
                                                  .warned = &surveyor->warned,
                                                  .progress = report,
                                                  .context = surveyor,
                                                  .stop = stop};
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
    return file_digest_read(digest, path,
                            &(struct file_digest_settings){.folder = surveyor->settings.folder,
                                                           .progress = report_bytes,
                                                           .context = surveyor,
                                                           .stop = surveyor->settings.stop},
                            error);
}

/* --- The tasks of a run --- */

static status survey_task(struct run *run, struct task *task, struct surveyor *surveyor, struct error *error)
{
    struct surveyor_subject subject = {task->settings.name, task->index + 1, run->data.task_count};
    status result = surveyor_look(surveyor, &task->survey, task->dataset, &subject, error);
    if (result != OK)
        return result == ERROR_STOPPED ? result : error_context(error, "task %s", task->settings.name);
    bool fewer = task->survey.splits[SPLIT_TRAIN].unreadable + task->survey.splits[SPLIT_TEST].unreadable > 0;
    task_settings_count(&task->settings, dataset_size(task->dataset, SPLIT_TRAIN));
    return fewer ? tasks_check(&run->model, run->suite, task, error) : OK;
}

static void take_image(void *context, enum split split, size_t item, const struct survey_image *image)
{
    struct surveyor *surveyor = context;
    same_images_add(&surveyor->images, surveyor->subject.number - 1, split, item, image);
}

/* Surveys all tasks even if one fails, so that all faults are reported at once. */
status surveyor_tasks(struct run *run, struct surveyor *surveyor, struct error *error)
{
    SCOPED(text_free) struct text names = {0};
    struct error problem;
    size_t unfit = 0;
    status result = OK;
    surveyor->settings.found = take_image;
    for (size_t k = 0; (result == OK || result == ERROR_FORMAT) && k < run->data.task_count; k++) {
        status found = survey_task(run, &run->data.tasks[k], surveyor, &problem);
        if (found == OK)
            continue;
        if (result == OK || found != ERROR_FORMAT)
            *error = problem;
        result = found;
        text_add(&names, "%s%s", unfit++ > 0 ? ", " : "", run->data.tasks[k].settings.name);
    }
    if (result == ERROR_FORMAT && unfit > 1)
        error_context(error, "%zu tasks have images that cannot be used: %s", unfit, names.data);
    surveyor->settings.found = NULL;
    if (result == OK) {
        trained_images_warn(&surveyor->images, &run->data, surveyor->settings.log);
        joint_gather(&run->data);
    }
    free(surveyor->images.images);
    surveyor->images = (struct same_images){0};
    return result;
}

status surveyor_leave_out_unreadable(struct run *run, struct progress *progress, const struct stop *stop,
                                     struct error *error)
{
    bool skips = false;
    for (size_t k = 0; k < run->data.task_count; k++)
        skips = skips || dataset_skips_unreadable(run->data.tasks[k].dataset);
    if (!skips)
        return OK;
    SCOPED(surveyor_close) struct surveyor surveyor = {0};
    TRY(surveyor_open(&surveyor, &run->model.settings, run->model.log, progress, stop, error));
    return surveyor_tasks(run, &surveyor, error);
}
