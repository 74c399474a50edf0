/* Runs another program to its end and collects its output.
 *
 *     struct text output = {0};
 *     TRY(tool_run((const char *[]){"sbatch", "--parsable", "batch.sh", NULL}, &output, error));
 *     text_free(&output);
 */
#pragma once

#include "core/text.h"

/* Appends standard output and standard error to output, interleaved as they arrive. ERROR_IO, with the last line of
 * output, when the program is not found in PATH or does not exit with 0. */
status tool_run(const char *const *arguments, struct text *output, struct error *error);
