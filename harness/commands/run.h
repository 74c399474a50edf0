/* What mtil run shares with mtil classify. */
#ifndef MTIL_HARNESS_COMMANDS_RUN_H
#define MTIL_HARNESS_COMMANDS_RUN_H

#include "harness/commands/command.h"

extern const struct option run_command_options[];

/* Runs the suite that the call names, with the words in place of the call's own; every seed, or with --dry-run none. */
status run_suite(const struct command_call *call, const char *const *words, size_t count, struct error *error);

#endif
