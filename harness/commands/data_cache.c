/* mtil data cache: the files of decoded images that runs with `run.cache: disk` leave for each other. */
#include <stdlib.h>

#include "datasets/cache/cache_folder.h"
#include "harness/commands/command.h"
#include "harness/commands/output.h"

#define FOLDER_OPTION                                                                                                  \
    {                                                                                                                  \
        .name = "folder", .type = OPTION_TEXT,                                                                         \
        .help = "of the files, as run.cache_folder says (default $XDG_CACHE_HOME/mtil or ~/.cache/mtil)"               \
    }

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

static uint64_t total_bytes(const struct cache_listing *listing)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < listing->count; i++)
        bytes += listing->files[i].bytes;
    return bytes;
}

/* --- show --------------------------------------------------------------------------------------------------------- */

static void add_file(struct table *table, const struct cache_item *file)
{
    static const char *const states[] = {
        [CACHE_COMPLETE] = "complete", [CACHE_BROKEN] = "damaged", [CACHE_UNFINISHED] = "unfinished"};
    bool known = file->state == CACHE_COMPLETE;
    char used[32];
    struct tm time;
    strftime(used, sizeof used, "%Y-%m-%d %H:%M", localtime_r(&file->used, &time));
    table_add_text(table, known ? file->label.dataset : NULL);
    table_add_text(table, !known ? NULL : file->label.split == SPLIT_TRAIN ? "train" : "test");
    if (known && file->label.resolution != 0)
        table_add_integer(table, (int64_t)file->label.resolution);
    else
        table_add_text(table, known ? "whole" : NULL);
    if (known)
        table_add_integer(table, (int64_t)file->images);
    else
        table_add_empty(table);
    table_add_real(table, (double)file->bytes / 1e6);
    table_add_text(table, used);
    table_add_text(table, states[file->state]);
    table_add_text(table, known ? file->label.root : NULL);
    table_add_text(table, file->path);
}

static status show(const struct command_call *call, struct error *error)
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
    struct cache_listing listing;
    struct table table = {0};
    char *folder;
    TRY(choose_folder(call, &folder, error));
    status result = cache_folder_list(&listing, folder, error);
    if (result == OK) {
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
            table_add_column(&table, &columns[i]);
        for (size_t i = 0; i < listing.count; i++)
            add_file(&table, &listing.files[i]);
        log_info(call->log, "%s: %zu file%s, %.1f MB", folder, listing.count, listing.count == 1 ? "" : "s",
                 (double)total_bytes(&listing) / 1e6);
        result = output_table(call, &table, error);
        table_free(&table);
        cache_listing_free(&listing);
    }
    free(folder);
    return result;
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
    struct cache_listing removed;
    char *folder;
    TRY(choose_folder(call, &folder, error));
    status result = cache_folder_clear(&removed, folder, call->argument_count > 0 ? call->arguments[0] : NULL, error);
    if (result == OK) {
        fprintf(call->out, "%s: removed %zu file%s, %.1f MB\n", folder, removed.count, removed.count == 1 ? "" : "s",
                (double)total_bytes(&removed) / 1e6);
        cache_listing_free(&removed);
    }
    free(folder);
    return result;
}

static const struct option clear_options[] = {FOLDER_OPTION, {0}};

static const struct command command_clear = {
    .name = "data cache clear",
    .arguments = "[ROOT]",
    .summary = "remove the cache's files, all or those of the datasets below a root",
    .details =
        "Runs that use one of them go on; a file that is being written stays. Other files in the folder are not\n"
        "touched. What is removed is decoded again when it is wanted.\n",
    .example = "  mtil data cache clear\n  mtil data cache clear data/mini\n",
    .options = clear_options,
    .least = 0,
    .most = 1,
    .run = clear,
};

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct command *const subcommands[] = {&command_show, &command_clear, NULL};

const struct command command_data_cache = {
    .name = "data cache",
    .arguments = "SUBCOMMAND",
    .summary = "list or remove the files of decoded images",
    .example = "  mtil data cache show\n  mtil data cache clear\n",
    .subcommands = subcommands,
};
