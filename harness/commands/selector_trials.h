/* mtil eval DATABASE RUN --selector NAME,…: other selectors on the saved adapters of a run, for eval.c. */
#pragma once

#include "harness/commands/command.h"

status selector_trials(const struct command_call *call, const char *names, struct error *error);
