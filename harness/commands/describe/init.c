/* mtil init: a suite to start from. */
#include <string.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "harness/commands/command.h"

EMBEDDED_FILES(embedded_init);

static status check_path(const char *path, struct error *error)
{
    if (strpbrk(path, "/.") == NULL)
        return error_set(
            error, ERROR_ARGUMENT,
            "command line: init: expected a file, as in %s.yaml; a name without a dot is a suite that ships", path);
    if (file_exists(path))
        return error_set(error, ERROR_IO, "init: %s exists; name another file, or remove it", path);
    return OK;
}

static status run(const struct command_call *call, struct error *error)
{
    const char *path = call->argument_count > 0 ? call->arguments[0] : "suite.yaml";
    TRY(check_path(path, error));
    TRY(file_write(path, embedded_init->data, embedded_init->size, error));
    log_info(call->log, "%s is written; mtil run %s --dry-run shows what it comes to", path, path);
    return OK;
}

const struct command command_init = {
    .name = "init",
    .arguments = "[FILE]",
    .summary = "write a suite to start from",
    .details =
        "FILE is suite.yaml if it is not given, and does not exist yet. The suite trains two tasks of one's own\n"
        "images: each folder below data.root has a folder for each class. mtil list keys shows every key.\n",
    .example = "  mtil init my-suite.yaml\n  mtil run my-suite.yaml --dry-run\n",
    .most = 1,
    .run = run,
};
