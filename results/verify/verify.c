#include "results/verify.h"

#include "results/verify/internal.h"

static status want_runs(const struct verifying *v, struct error *error)
{
    const struct verification *asked = v->verification;
    struct database *database = v->store->database;
    TRY(database_execute(database, "CREATE TEMP TABLE looked_at (run INTEGER PRIMARY KEY)", error));
    if (asked->count == 0)
        return database_execute(database, "INSERT INTO looked_at SELECT run FROM runs", error);
    for (size_t i = 0; i < asked->count; i++) {
        struct run_record record;
        TRY(store_read_record(v->store, asked->runs[i], &record, error));
        run_record_free(&record);
        TRY(database_run(database, "INSERT OR IGNORE INTO looked_at VALUES (?1)", VALUES(value_integer(asked->runs[i])),
                         error));
    }
    return OK;
}

/* A row of: what, checked, faults; the last is of files that are missing. */
static status take_count(void *context, struct statement *row, struct error *error)
{
    struct verification *verification = context;
    (void)error;
    if (statement_value(row, 0).kind == VALUE_NULL) {
        verification->missing_files = (size_t)statement_integer(row, 1);
        return OK;
    }
    table_add_text(&verification->checked, statement_text(row, 0));
    table_add_integer(&verification->checked, statement_integer(row, 1));
    table_add_integer(&verification->checked, (int64_t)table_rows(&verification->faults));
    return OK;
}

static const char counts_sql[] =
    "SELECT 'tables and views', count(*) FROM (SELECT name FROM own_schema UNION SELECT name FROM found_schema) "
    "UNION ALL SELECT 'runs', count(*) FROM runs UNION ALL SELECT 'evaluations with images', count(*) FROM tested "
    "UNION ALL SELECT 'checks', ?1 UNION ALL SELECT 'files', count(*) FROM kept_files WHERE state <> 'missing' "
    "UNION ALL SELECT NULL, count(*) FROM kept_files WHERE state = 'missing'";

static status check_all(const struct verifying *v, struct error *error)
{
    TRY(want_runs(v, error));
    TRY(verify_schema(v, error));
    TRY(verify_checks(v, true, error));
    TRY(verify_suites(v, error));
    TRY(verify_metrics(v, error));
    TRY(verify_tables(v, error));
    TRY(verify_checks(v, false, error));
    return database_each(v->store->database, counts_sql, VALUES(value_integer(verify_check_count())), take_count,
                         v->verification, error);
}

static void add_titles(struct table *table, const char *const *titles)
{
    for (; *titles != NULL; titles++)
        table_add_column(table, &(struct table_column){.title = *titles});
}

status verify_database(struct store *store, struct verification *verification, struct error *error)
{
    struct verifying v = {store, verification};
    add_titles(&verification->faults, (const char *const[]){"run", "what", "where", "expected", "found", NULL});
    add_titles(&verification->checked, (const char *const[]){"what", "checked", "faults", NULL});
    TRY(database_execute(store->database, "BEGIN", error)); /* one state, though runs may go on */
    status result = check_all(&v, error);
    database_rollback(store->database);
    bool found = table_rows(&verification->faults) > 0;
    if ((result == ERROR_FORMAT || (result != OK && result != ERROR_STOPPED && found)) && error != NULL) {
        verify_fault(&v, 0, "readable", "the rest", "checked, too", error->message);
        result = OK;
    }
    return result;
}

void verification_free(struct verification *verification)
{
    table_free(&verification->faults);
    table_free(&verification->checked);
}
