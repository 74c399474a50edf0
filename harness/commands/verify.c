/* mtil verify: checks the consistency of a results database. */
#include <string.h>

#include "harness/commands/output.h"
#include "harness/commands/run_list.h"
#include "harness/heads/heads.h"
#include "harness/methods/methods.h"
#include "harness/train/method.h"
#include "results/verify.h"

static const struct option options[] = {OUTPUT_FORMAT_OPTION, {0}};

static enum verify_cells cells_of(const char *name)
{
    const struct method *method = NULL;
    const struct head *head;
    for (size_t i = 0; (method = method_at(i)) != NULL && strcmp(method->name, name) != 0;)
        i++;
    if (method != NULL && method->head != NULL && head_find(&head, method->head, NULL) == OK && !head->of_texts)
        return CELLS_TRAINED;
    if (method != NULL && method->alone)
        return CELLS_DIAGONAL;
    if (method != NULL && method->joint)
        return CELLS_LAST;
    return method != NULL && method->options == NULL && method->groups(NULL) == GROUPS_NONE ? CELLS_ZERO_SHOT
                                                                                            : CELLS_ALL;
}

static status show(const struct command_call *call, const struct verification *verification, struct error *error)
{
    size_t faults = table_rows(&verification->faults);
    const char *database = call->arguments[0];
    TRY(output_table(call, faults > 0 ? &verification->faults : &verification->checked, error));
    if (verification->missing_files > 0)
        log_info(call->log, "%s: %zu file%s of its runs cannot be found any more, and %s not checked", database,
                 verification->missing_files, verification->missing_files == 1 ? "" : "s",
                 verification->missing_files == 1 ? "was" : "were");
    if (faults == 0)
        return OK;
    return error_set(error, ERROR_FORMAT, "%s: %zu thing%s not hold; see above", database, faults,
                     faults == 1 ? " does" : "s do");
}

static status run(const struct command_call *call, struct error *error)
{
    struct run_list list;
    struct store *store;
    status result = run_list_read(&list, call->arguments + 1, call->argument_count - 1, error);
    NEXT(result, store_open(&store, call->arguments[0], STORE_SNAPSHOT, error));
    if (result == OK) {
        struct verification verification = {.runs = list.runs, .count = list.count, .cells = cells_of};
        result = verify_database(store, &verification, error);
        NEXT(result, show(call, &verification, error));
        verification_free(&verification);
        store_close(store);
    }
    run_list_free(&list);
    return result;
}

const struct command command_verify = {
    .name = "verify",
    .arguments = "DATABASE [RUN...]",
    .summary = "check the consistency of a results database",
    .details =
        "Computes every derived number again from the rows, and compares rows with one another and stored files with\n"
        "their digests. Each inconsistency is a row of the output, and the exit status is 1. RUN is a number, a\n"
        "list or a range: 3, 1,4 or 5-9; by default all runs are checked, and the means over them. Nothing is\n"
        "written.\n",
    .example = "  mtil verify results.db\n  mtil verify results.db 5-9 --format json\n",
    .options = options,
    .least = 1,
    .most = SIZE_MAX,
    .run = run,
};
