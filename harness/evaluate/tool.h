/* Another program of the system, run to its end, and what it says.
 *
 *     struct text output = {0};
 *     TRY(tool_run((const char *[]){"sbatch", "--parsable", "batch.sh", NULL}, &output, error));
 *     text_free(&output);
 */
#ifndef MTIL_HARNESS_EVALUATE_TOOL_H
#define MTIL_HARNESS_EVALUATE_TOOL_H

#include "core/text.h"

/* Appends standard output and standard error, as they come, to output. ERROR_IO when the program (found by PATH) is not
 * there or does not end with 0, with the last line it said. */
status tool_run(const char *const *arguments, struct text *output, struct error *error);

#endif
