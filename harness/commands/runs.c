/* mtil runs: what can be done to the runs of a results database. A new subcommand: its file runs_NAME.c, and its name twice
 * here. `mtil query DATABASE runs` lists them. */
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
