#include "harness/heads/groups.h"

bool groups_beside_towers(unsigned groups)
{
    return groups & (GROUP_ADAPTERS | GROUP_DELTAS | GROUP_PREFIXES) && !(groups & GROUPS_TOWERS);
}

const struct option groups_options[] = {{.name = "train",
                                         .type = OPTION_CHOICE,
                                         .choices = "adapters|weights",
                                         .fallback = "weights",
                                         .help = "trained parameters: the adapters, or all weights"},
                                        {0}};

unsigned groups_chosen(const struct options *options)
{
    return options_choice(options, "train") == 0 ? GROUP_ADAPTERS : GROUPS_TOWERS;
}
