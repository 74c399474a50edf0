/* mtil list keys: every key that a suite may have, from the option tables of their owners.
 *
 *     TRY(list_keys(call, "merge", error));            // NULL: all sections; in Markdown this is harness/suites/KEYS.md
 */
#pragma once

#include "harness/commands/command.h"

status list_keys(const struct command_call *call, const char *section, struct error *error);
