/* What a command leaves to another file. */
#pragma once

#include "harness/commands/command.h"

/* mtil eval DATABASE RUN --selector NAME,…: other selectors on the saved adapters of a run. */
status selector_trials(const struct command_call *call, const char *names, struct error *error);

/* mtil list keys: every key that a suite may have in a section, from the option tables of their owners. section NULL: in
 * all of them; in Markdown this is harness/suites/KEYS.md. */
status list_keys(const struct command_call *call, const char *section, struct error *error);
