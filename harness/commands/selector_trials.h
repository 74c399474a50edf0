/* mtil eval DATABASE RUN --selector NAME,…: other selectors on the saved adapters of a run. */
#ifndef MTIL_HARNESS_COMMANDS_SELECTOR_TRIALS_H
#define MTIL_HARNESS_COMMANDS_SELECTOR_TRIALS_H

#include "harness/commands/command.h"

status selector_trials(const struct command_call *call, const char *names, struct error *error);

#endif
