/* The runs that a command line names: "3", "1,4", "5-9", each at least 1; ascending, each once.
 *
 *     struct run_list list;
 *     status result = run_list_read(&list, call->arguments + 1, call->argument_count - 1, error);
 *     … list.runs[0 … list.count) …
 *     run_list_free(&list);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct run_list {
    int64_t *runs;
    size_t count;
};

/* The caller frees, also after a failure. */
status run_list_read(struct run_list *list, const char *const *words, size_t count, struct error *error);
void run_list_free(struct run_list *list);
