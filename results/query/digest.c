/* One digest over all accuracies, for pages that state results: whoever runs the same gets the same. */
#include <inttypes.h>

#include "core/digest.h"
#include "core/text.h"
#include "results/query/internal.h"
#include "results/store/store_internal.h"

/* Runs by what they are and not by their numbers, so that the order in which they were run does not matter. */
#define ACCURACIES                                                                                                     \
    CHOSEN "SELECT suite_hash, seed, after_task, task, correct, images FROM chosen JOIN evaluations USING (run) "      \
           "WHERE status = 'finished' ORDER BY 1, 2, 3, 4"

static void add_line(struct digest *digest, struct statement *statement)
{
    struct text line = {0};
    text_add(&line, "%s", statement_text(statement, 0));
    for (size_t column = 1; column < 6; column++)
        text_add(&line, " %" PRId64, statement_integer(statement, column));
    text_add(&line, "\n");
    digest_add(digest, line.data, line.size);
    text_free(&line);
}

status query_digest(struct store *store, const struct query_filter *filter, struct table *table, struct error *error)
{
    struct statement *statement;
    struct digest digest = digest_begin();
    char hash[DIGEST_SIZE];
    int64_t accuracies = 0;
    TRY(statement_open(&statement, store->database, ACCURACIES, error));
    status result = query_bind_filter(statement, filter, error);
    for (bool row = true; result == OK && row;) {
        result = statement_step(statement, &row, error);
        if (result == OK && row) {
            add_line(&digest, statement);
            accuracies++;
        }
    }
    statement_close(statement);
    TRY(result);
    digest_end(&digest, hash);
    table_add_column(table, &(struct table_column){.title = "accuracies"});
    table_add_column(table, &(struct table_column){.title = "digest"});
    table_add_integer(table, accuracies);
    table_add_text(table, hash);
    return OK;
}
