/* mtil init: a suite to start from. */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "core/scope.h"
#include "core/text.h"
#include "datasets/formats/strings.h"
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

/* --- The tasks of a folder --- */

/* In quotes, as YAML reads any name. */
static void add_name(struct text *text, const char *name)
{
    static const char *const quoted[] = {"\\", "\\\\", "\"", "\\\"", NULL};
    text_add(text, "\"");
    text_add_replaced(text, name, quoted);
    text_add(text, "\"");
}

/* A task is a folder with a folder for each class. A list of a suite has no items with commas, blanks or control characters. */
static status check_task(const char *path, const char *name, struct error *error)
{
    SCOPED(strings_free) struct strings classes = {0};
    TRY(strings_list_folders(&classes, path, error));
    if (classes.count == 0)
        return error_set(
            error, ERROR_FORMAT,
            "%s: expected a folder for each class, found none; mtil init takes the folder that holds the tasks", path);
    if (strpbrk(name, ", ") == NULL && text_is_visible(name))
        return OK;
    return error_set(error, ERROR_FORMAT,
                     "%s: a task's name has no comma, blank or control character; rename the folder", path);
}

static status add_tasks(struct text *order, struct text *tasks, const char *folder, struct error *error)
{
    SCOPED(strings_free) struct strings names = {0};
    TRY(strings_list_folders(&names, folder, error));
    for (size_t i = 0; i < names.count; i++) {
        OWNED char *path = path_format("%s/%s", folder, names.items[i]);
        TRY(check_task(path, names.items[i], error));
        text_add(order, i > 0 ? ", " : "");
        add_name(order, names.items[i]);
        text_add(tasks, "  ");
        add_name(tasks, names.items[i]);
        text_add(tasks, ": {reader: folder}\n");
    }
    if (names.count == 0)
        return error_set(error, ERROR_FORMAT, "%s: expected a folder for each task, found none", folder);
    return OK;
}

/* The suite that ships, with the tasks of a folder in place of its own. */
static status write_suite(const char *path, const char *folder, struct error *error)
{
    SCOPED(text_free) struct text suite = {0}, order = {0}, tasks = {0};
    TRY(add_tasks(&order, &tasks, folder, error));
    text_add(&suite, "# The tasks of a folder, each with a folder of images for each class\n");
    for (const char *line = (const char *)embedded_init->data, *end; *line != 0; line = end) {
        end = line + strcspn(line, "\n");
        end += *end != 0;
        if (strncmp(line, "data:", 5) == 0) {
            text_add(&suite, "data: {root: ");
            add_name(&suite, folder);
            text_add(&suite, ", order: [%s]}\ntasks:\n%s", order.data, tasks.data);
        } else if (*line != '#' && *line != ' ' && strncmp(line, "tasks:", 6) != 0)
            text_add_bytes(&suite, line, (size_t)(end - line));
    }
    return file_write(path, suite.data, suite.size, error);
}

static status run(const struct command_call *call, struct error *error)
{
    const char *folder = call->argument_count > 0 && file_is_directory(call->arguments[0]) ? call->arguments[0] : NULL;
    size_t first = folder != NULL;
    const char *path = call->argument_count > first ? call->arguments[first] : "suite.yaml";
    if (call->argument_count > first + 1)
        return error_set(error, ERROR_ARGUMENT,
                         "command line: init: expected a folder and a file, found \"%s\" and \"%s\"",
                         call->arguments[0], call->arguments[1]);
    TRY(check_path(path, error));
    TRY(folder != NULL ? write_suite(path, folder, error)
                       : file_write(path, embedded_init->data, embedded_init->size, error));
    log_info(call->log, "%s is written; mtil run %s --dry-run shows what it comes to", path, path);
    return OK;
}

const struct command command_init = {
    .name = "init",
    .arguments = "[FOLDER] [FILE]",
    .summary = "write a suite to start from",
    .details =
        "FILE is suite.yaml if it is not given, and does not exist yet. Each folder in FOLDER becomes a task, and\n"
        "has a folder for each class; without FOLDER the suite has two tasks, my/scenes and my/fields, to be\n"
        "replaced. mtil list keys shows every key.\n",
    .example = "  mtil init my\n  mtil init my my-suite.yaml\n  mtil run my-suite.yaml --dry-run\n",
    .most = 2,
    .run = run,
};
