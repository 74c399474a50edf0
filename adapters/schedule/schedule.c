#include "adapters/schedule/schedule.h"

#include "core/text.h"

#define ENTRY(name) &schedule_##name,
static const struct merge_schedule *const schedules[] = {MERGE_SCHEDULES(ENTRY)};
#undef ENTRY

REGISTRY_AT(merge_schedule, struct merge_schedule, schedules)
