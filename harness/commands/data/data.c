/* mtil data. A new subcommand: its file NAME.c, and its name twice here. */
#include "harness/commands/command.h"

extern const struct command command_data_cache, command_data_check, command_data_get, command_data_mini,
    command_data_show;

static const struct command *const subcommands[] = {&command_data_cache, &command_data_check, &command_data_get,
                                                    &command_data_mini,  &command_data_show,  NULL};

const struct command command_data = {
    .name = "data",
    .arguments = "SUBCOMMAND",
    .summary = "fetch, write, check and show datasets, clear the cache",
    .example = "  mtil data mini data/mini\n"
               "  mtil data check data/mini\n",
    .subcommands = subcommands,
};
