/* mtil runs. A new subcommand: its file runs_NAME.c, and its name twice here. `mtil query DATABASE runs` lists the
 * runs. */
#include "harness/commands/command.h"

extern const struct command command_runs_delete;

static const struct command *const subcommands[] = {&command_runs_delete, NULL};

const struct command command_runs = {
    .name = "runs",
    .arguments = "SUBCOMMAND",
    .summary = "remove runs from a results database",
    .example = "  mtil runs delete results.db 3\n",
    .subcommands = subcommands,
};
