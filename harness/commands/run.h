/* The common part of mtil run and mtil classify. */
#pragma once

#include "harness/commands/command.h"

extern const struct option run_command_options[];

/* Runs the suite that the call names under every seed, with the words in place of the call's own; with --dry-run,
 * prints the plan only. */
status run_suite(const struct command_call *call, const char *const *words, size_t count, struct error *error);
