/* For benches: what fails ends the program, with 77 where there is no device. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/status.h"

static struct error error; /* of the last call that failed */

static inline void must(status result)
{
    if (result == OK)
        return;
    fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, result == ERROR_DEVICE ? "skipped, " : "",
            error.message);
    exit(result == ERROR_DEVICE ? 77 : 1);
}
