/* Build and environment of this program, for the results and for `mtil doctor`.
 *
 *     puts(program_commit());                                    // "1a2b3c4-dirty"
 *     for (size_t i = 0; program_library(i, &library); i++) … library.name, library.version …
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/text.h"

const char *program_commit(void);   /* `git describe --always --dirty` at build time; "": not built in a checkout */
const char *program_compiler(void); /* "GCC 12.2.0" */

struct library {
    const char *name;
    char version[64];
};
bool program_library(size_t index, struct library *library); /* false: no more */

void program_add_libraries(struct text *text);    /* "oneDNN 2.6.3, SQLite 3.40.1, …" */
void program_add_command_line(struct text *text); /* quoted for a shell */
void program_add_cpu(struct text *text);          /* "AMD EPYC 9654 96-Core Processor" */
