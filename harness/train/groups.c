#include "harness/train/groups.h"

unsigned groups_none(const struct options *options)
{
    (void)options;
    return GROUPS_NONE;
}

unsigned groups_adapters(const struct options *options)
{
    (void)options;
    return GROUP_ADAPTERS;
}

unsigned groups_towers(const struct options *options)
{
    (void)options;
    return GROUPS_TOWERS;
}
