#include "harness/run/tasks_survey.h"

#include "core/text.h"
#include "harness/heads/tasks.h"
#include "harness/scenario/joint.h"

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

/* Surveys all tasks even if one fails, so that all faults are reported at once. */
status tasks_survey(struct run *run, struct surveyor *surveyor, struct error *error)
{
    struct text names = {0};
    struct error problem;
    size_t unfit = 0;
    status result = OK;
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
    text_free(&names);
    return result == OK ? joint_gather(&run->data, error) : result;
}

status tasks_leave_out_unreadable(struct run *run, struct progress *progress, const struct stop *stop,
                                  struct error *error)
{
    bool skips = false;
    for (size_t k = 0; k < run->data.task_count; k++)
        skips = skips || dataset_skips_unreadable(run->data.tasks[k].dataset);
    if (!skips)
        return OK;
    struct surveyor surveyor;
    TRY(surveyor_open(&surveyor, &run->model.settings, run->model.log, progress, stop, error));
    status result = tasks_survey(run, &surveyor, error);
    surveyor_close(&surveyor);
    return result;
}
