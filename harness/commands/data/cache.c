/* mtil data cache: files of decoded images and zero-shot features, shared by runs with `run.cache: disk`, and surveys
 * of images, shared by all runs. */
#include <stdlib.h>
#include <string.h>

#include "core/scope.h"
#include "datasets/cache/cache_file.h"
#include "harness/commands/command.h"
#include "harness/commands/output.h"
#include "harness/evaluate/shared_features.h"

#define FOLDER_OPTION                                                                                                  \
    OPTION(TEXT, "folder", NULL,                                                                                       \
           "folder of the cache, as in run.cache_folder (default $XDG_CACHE_HOME/mtil or ~/.cache/mtil)")

/* The caller frees folder. */
static status choose_folder(const struct command_call *call, char **folder, struct error *error)
{
    const char *given = options_text(call->options, "folder");
    *folder = given != NULL ? path_format("%s", given) : cache_folder_default();
    return *folder != NULL
               ? OK
               : error_set(error, ERROR_ARGUMENT,
                           "command line: neither XDG_CACHE_HOME nor HOME says where the cache is; name its "
                           "folder with --folder");
}

/* Everything in the folder. */
struct content {
    struct cache_listing images;
    struct shared_files others;
};

static void content_free(struct content *content)
{
    cache_listing_free(&content->images);
    shared_files_free(&content->others);
}

/* "7 files, 12.3 MB" */
static void add_total(struct text *text, const struct content *content)
{
    size_t count = content->images.count + content->others.count;
    uint64_t bytes = 0;
    for (size_t i = 0; i < content->images.count; i++)
        bytes += content->images.files[i].bytes;
    for (size_t i = 0; i < content->others.count; i++)
        bytes += content->others.files[i].bytes;
    text_add(text, "%zu file%s, %.1f MB", count, count == 1 ? "" : "s", (double)bytes / 1e6);
}

/* --- show --------------------------------------------------------------------------------------------------------- */

static void add_time(struct table *table, time_t when)
{
    char text[32];
    struct tm time;
    strftime(text, sizeof text, "%Y-%m-%d %H:%M", localtime_r(&when, &time));
    table_add_text(table, text);
}

static void add_count(struct table *table, bool known, size_t count)
{
    if (known)
        table_add_integer(table, (int64_t)count);
    else
        table_add_empty(table);
}

static void add_images(struct table *table, const struct cache_item *file)
{
    static const char *const states[] = {
        [CACHE_COMPLETE] = "complete", [CACHE_BROKEN] = "damaged", [CACHE_UNFINISHED] = "unfinished"};
    bool known = file->state == CACHE_COMPLETE;
    table_add_text(table, known ? file->label.dataset : NULL);
    table_add_text(table, !known ? NULL : file->label.split == SPLIT_TRAIN ? "train" : "test");
    if (known && file->label.resolution != 0)
        table_add_integer(table, (int64_t)file->label.resolution);
    else
        table_add_text(table, known ? "whole" : NULL);
    add_count(table, known, file->images);
    table_add_real(table, (double)file->bytes / 1e6);
    add_time(table, file->used);
    table_add_text(table, states[file->state]);
    table_add_text(table, known ? file->label.root : NULL);
    table_add_text(table, file->path);
}

static void add_shared(struct table *table, const struct shared_file *file)
{
    bool known = file->root != NULL;
    table_add_text(table, file->dataset);
    table_add_text(table, known && strcmp(file->kind, "features") == 0 ? "test" : NULL);
    table_add_text(table, file->kind);
    add_count(table, file->dataset != NULL, file->images);
    table_add_real(table, (double)file->bytes / 1e6);
    add_time(table, file->used);
    table_add_text(table, known ? "complete" : "damaged");
    table_add_text(table, file->root);
    table_add_text(table, file->path);
}

static void show_content(const struct command_call *call, const char *folder, const struct content *content)
{
    static const struct table_column columns[] = {{.title = "dataset"},
                                                  {.title = "part"},
                                                  {.title = "resolution"},
                                                  {.title = "images"},
                                                  {.title = "MB", .decimals = 1},
                                                  {.title = "last used"},
                                                  {.title = "state"},
                                                  {.title = "root"},
                                                  {.title = "file"}};
    SCOPED(table_free) struct table table = {0};
    SCOPED(text_free) struct text total = {0};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        table_add_column(&table, &columns[i]);
    for (size_t i = 0; i < content->images.count; i++)
        add_images(&table, &content->images.files[i]);
    for (size_t i = 0; i < content->others.count; i++)
        add_shared(&table, &content->others.files[i]);
    add_total(&total, content);
    log_info(call->log, "%s: %s", folder, total.data);
    output_table(call, &table);
}

static status show(const struct command_call *call, struct error *error)
{
    SCOPED(content_free) struct content content = {.images = {0}};
    OWNED char *folder = NULL;
    TRY(choose_folder(call, &folder, error));
    TRY(cache_folder_list(&content.images, folder, error));
    TRY(shared_files_list(&content.others, folder, error));
    show_content(call, folder, &content);
    return OK;
}

static const struct option show_options[] = {OUTPUT_FORMAT_OPTION, FOLDER_OPTION, {0}};

static const struct command command_show = {
    .name = "data cache show",
    .arguments = "",
    .summary = "list the cache's files, their sizes and when a run last used them",
    .example = "  mtil data cache show\n",
    .options = show_options,
    .run = show,
};

/* --- clear -------------------------------------------------------------------------------------------------------- */

static status clear(const struct command_call *call, struct error *error)
{
    const char *root = call->argument_count > 0 ? call->arguments[0] : NULL;
    SCOPED(content_free) struct content removed = {.images = {0}};
    SCOPED(text_free) struct text total = {0};
    OWNED char *folder = NULL;
    TRY(choose_folder(call, &folder, error));
    TRY(cache_folder_clear(&removed.images, folder, root, error));
    TRY(shared_files_clear(&removed.others, folder, root, error));
    add_total(&total, &removed);
    output_words(call, folder);
    fprintf(call->out, ": removed %s\n", total.data);
    return OK;
}

static const struct option clear_options[] = {FOLDER_OPTION, {0}};

static const struct command command_clear = {
    .name = "data cache clear",
    .arguments = "[ROOT]",
    .summary = "remove the cache's files, all or those of the datasets below a root",
    .details =
        "Runs that use one of the files continue; a file that is being written stays. Other files in the folder\n"
        "are not touched. Removed images are decoded again when they are needed.\n",
    .example = "  mtil data cache clear\n  mtil data cache clear data/mini\n",
    .options = clear_options,
    .most = 1,
    .run = clear,
};

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct command *const subcommands[] = {&command_show, &command_clear, NULL};

const struct command command_data_cache = {
    .name = "data cache",
    .arguments = "SUBCOMMAND",
    .summary = "list or remove the files of decoded images and zero-shot features",
    .example = "  mtil data cache show\n  mtil data cache clear\n",
    .subcommands = subcommands,
};
