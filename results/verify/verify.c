#include "results/verify.h"

#include "results/verify/internal.h"

static const char *const fault_titles[] = {"run", "what", "where", "expected", "found"};
static const char *const checked_titles[] = {"what", "checked", "faults"};

static void add_titles(struct table *table, const char *const *titles, size_t count)
{
    for (size_t i = 0; i < count; i++)
        table_add_column(table, &(struct table_column){.title = titles[i]});
}

static status check_runs(const struct verifying *v, struct error *error)
{
    for (size_t i = 0; i < v->verification->count; i++) {
        struct run_record record;
        TRY(store_read_record(v->store, v->verification->runs[i], &record, error));
        run_record_free(&record);
    }
    return OK;
}

static status check_all(const struct verifying *v, struct error *error)
{
    TRY(check_runs(v, error));
    TRY(verify_schema(v, error));
    TRY(verify_suites(v, error));
    TRY(verify_metrics(v, error));
    TRY(verify_per_image(v, error));
    TRY(verify_checks(v, error));
    return verify_artifacts(v, error);
}

status verify_database(struct store *store, struct verification *verification, struct error *error)
{
    struct verifying v = {store, verification};
    add_titles(&verification->faults, fault_titles, sizeof fault_titles / sizeof *fault_titles);
    add_titles(&verification->checked, checked_titles, sizeof checked_titles / sizeof *checked_titles);
    TRY(database_execute(store->database, "BEGIN", error)); /* one state, though runs may go on */
    status result = check_all(&v, error);
    database_rollback(store->database);
    bool found = table_rows(&verification->faults) > 0; /* a missing table ends the checks that read it */
    if ((result == ERROR_FORMAT || (result != OK && result != ERROR_STOPPED && found)) && error != NULL) {
        verify_fault(&v, &(struct verify_fault){0, "readable", "the rest", "checked, too", error->message});
        result = OK;
    }
    if (result == OK && (verification->faults.failed || verification->checked.failed))
        result = error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
    return result;
}

void verification_free(struct verification *verification)
{
    table_free(&verification->faults);
    table_free(&verification->checked);
}
