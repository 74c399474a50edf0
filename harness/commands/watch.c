/* mtil watch: shows the progress of running runs. */

#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/commands/command.h"
#include "harness/run/settings.h"
#include "harness/terminal/screen.h"
#include "results/query.h"

static const struct option options[] = {
    OPTION(BOOLEAN, "once", "no", "print once and exit"),
    OPTION_NUMBER(REAL, "every", 0.1, 3600, "1", "seconds between updates"),
    {0},
};

/* Appends the first cell of the answer of counts, and the tables of the others where they have rows. */
static status add_answer(struct store *store, const char *question, const char *standing, struct text *text,
                         struct error *error)
{
    SCOPED(table_free) struct table table = {0};
    status result = query_named(store, question, &(struct query_filter){.status = standing}, &table, error);
    if (result == OK && standing == NULL)
        text_add(text, "%s", table_cell_at(&table, 0, 0)->text);
    else if (result == OK && table_rows(&table) > 0) {
        text_add(text, "\n");
        table_render(&table, TABLE_TEXT, false, text);
    }
    return result;
}

static status look(struct store *store, struct text *text, struct error *error)
{
    text_clear(text);
    text_add_visible(text, store_path(store));
    text_add(text, ": ");
    TRY(add_answer(store, "counts", NULL, text, error));
    text_add(text, "\n");
    TRY(add_answer(store, "progress", "running", text, error));
    TRY(add_answer(store, "reached", "running", text, error));
    return OK;
}

static status print_once(const struct command_call *call, struct store *store, struct error *error)
{
    SCOPED(text_free) struct text text = {0};
    TRY(look(store, &text, error));
    fputs(text.data, call->out);
    return OK;
}

static status keep_looking(const struct command_call *call, struct store *store, struct error *error)
{
    SCOPED(text_free) struct text text = {0};
    SCOPED(screen_close) struct screen screen = {.out = call->out};
    double seconds = options_real(call->options, "every");
    struct stat file = {0};
    status result;
    do {
        result = file_check_same(store_path(store), &file, error);
        NEXT(result, look(store, &text, error));
        if (result == OK)
            screen_show(&screen, text.data);
    } while (result == OK && screen_wait(&screen, seconds, call->stop));
    return result == ERROR_STOPPED ? OK : result; /* Ctrl-C is the normal way to leave */
}

static status run(const struct command_call *call, struct error *error)
{
    SCOPED(store_close_at) struct store *store = NULL;
    TRY(store_open_stoppable(&store, call->argument_count > 0 ? call->arguments[0] : SETTINGS_DATABASE, STORE_READ,
                             call->stop, error));
    return options_boolean(call->options, "once") ? print_once(call, store, error) : keep_looking(call, store, error);
}

const struct command command_watch = {
    .name = "watch",
    .arguments = "[DATABASE]",
    .summary = "show the progress of running runs",
    .details = "Task, step, loss, speed and remaining time of each running run, and its last row of accuracies. On a "
               "terminal\n"
               "the screen is redrawn every second until Ctrl-C; elsewhere lines are printed when they change.\n",
    .example = "  mtil watch results.db\n"
               "  mtil watch results.db --once\n",
    .options = options,
    .most = 1,
    .run = run,
};
