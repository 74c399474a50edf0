#include "adapters/schedule/schedule.h"

#define ENTRY(name) &schedule_##name,
static const struct merge_schedule *const schedules[] = {MERGE_SCHEDULES(ENTRY)};
#undef ENTRY

const struct merge_schedule *merge_schedule_at(size_t index)
{
    return index < sizeof schedules / sizeof *schedules ? schedules[index] : NULL;
}
