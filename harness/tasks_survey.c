#include "harness/tasks_survey.h"

#include <stdlib.h>

#include "core/text.h"
#include "datasets/cache/cache_folder.h"
#include "harness/tasks.h"

struct surveying {
    struct experiment *e;
    struct progress *progress;
    const struct stop *stop;
    const struct task *task; /* the one at hand */
};

static void report(void *context, size_t done, size_t total)
{
    const struct surveying *surveying = context;
    progress_report(surveying->progress, &(struct progress_state){.activity = "check",
                                                                  .subject = surveying->task->settings.name,
                                                                  .task = surveying->task->index + 1,
                                                                  .tasks = surveying->e->task_count,
                                                                  .step = done,
                                                                  .steps = total,
                                                                  .images = done});
}

static bool is_stopped(void *context)
{
    const struct surveying *surveying = context;
    return stop_requested(surveying->stop);
}

static status survey_task(struct experiment *e, struct task *task, const struct survey_settings *settings,
                          struct error *error)
{
    status result = dataset_survey(&task->survey, task->dataset, settings, error);
    if (result != OK)
        return result == ERROR_STOPPED ? result : error_context(error, "task %s", task->settings.name);
    bool fewer = task->survey.splits[SPLIT_TRAIN].unreadable + task->survey.splits[SPLIT_TEST].unreadable > 0;
    return fewer ? tasks_check(e, task, error) : OK;
}

/* Images that cannot be decoded in one task are no reason not to look at the others: all are told at once. */
static status survey_all(struct surveying *surveying, const struct survey_settings *settings, struct error *error)
{
    struct experiment *e = surveying->e;
    struct text names = {0};
    struct error problem;
    size_t unfit = 0;
    status result = OK;
    for (size_t k = 0; (result == OK || result == ERROR_FORMAT) && k < e->task_count; k++) {
        surveying->task = &e->tasks[k];
        status found = survey_task(e, &e->tasks[k], settings, &problem);
        if (found == OK)
            continue;
        if (result == OK || found != ERROR_FORMAT)
            *error = problem;
        result = found;
        text_add(&names, "%s%s", unfit++ > 0 ? ", " : "", e->tasks[k].settings.name);
    }
    if (result == ERROR_FORMAT && unfit > 1)
        error_context(error, "%zu tasks have images that cannot be used: %s", unfit, names.failed ? "…" : names.data);
    text_free(&names);
    return result;
}

status tasks_survey(struct experiment *e, struct progress *progress, const struct stop *stop, struct error *error)
{
    struct surveying surveying = {.e = e, .progress = progress, .stop = stop};
    struct threads *threads;
    bool told = false;
    TRY(threads_create(&threads, e->settings.threads, error));
    char *usual = e->settings.cache.folder == NULL ? cache_folder_default() : NULL;
    struct survey_settings settings = {.folder = usual != NULL ? usual : e->settings.cache.folder,
                                       .threads = threads,
                                       .log = e->log,
                                       .told = &told,
                                       .progress = report,
                                       .stopped = is_stopped,
                                       .context = &surveying};
    if (settings.folder == NULL)
        log_info(e->log, "neither XDG_CACHE_HOME nor HOME says where to keep what is found in the images, so they are "
                         "decoded at every start; set run.cache_folder");
    status result = survey_all(&surveying, &settings, error);
    threads_destroy(threads);
    free(usual);
    return result;
}

status tasks_leave_out_unreadable(struct experiment *e, struct progress *progress, const struct stop *stop,
                                  struct error *error)
{
    bool skips = false;
    for (size_t k = 0; k < e->task_count; k++)
        skips = skips || dataset_skips_unreadable(e->tasks[k].dataset);
    return skips ? tasks_survey(e, progress, stop, error) : OK;
}
