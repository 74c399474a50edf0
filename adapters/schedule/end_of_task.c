/* When the task ends, before experts are frozen. */
#include "adapters/merge.h"

const struct merge_schedule schedule_end_of_task = {
    .name = "end_of_task", .help = "when the task ends, before experts are frozen", .after_task = true};
