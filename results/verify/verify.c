#include "results/verify/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "results/verify/internal.h"

static const char *const fault_titles[] = {"run", "what", "where", "expected", "found"};
static const char *const checked_titles[] = {"what", "checked", "faults"};

static void add_titles(struct table *table, const char *const *titles, size_t count)
{
    for (size_t i = 0; i < count; i++)
        table_add_column(table, &(struct table_column){.title = titles[i]});
}

bool verify_wants(const struct verifying *v, int64_t run)
{
    const struct verification *asked = v->verification;
    bool wanted = asked->count == 0;
    for (size_t i = 0; i < asked->count && !wanted; i++)
        wanted = asked->runs[i] == run;
    return wanted;
}

bool verify_fault(const struct verifying *v, const struct verify_fault *fault)
{
    struct table *table = &v->verification->faults;
    if (fault->run > 0 && !verify_wants(v, fault->run))
        return false;
    if (fault->run > 0)
        table_add_integer(table, fault->run);
    else
        table_add_empty(table);
    table_add_text(table, fault->what);
    table_add_text(table, fault->where);
    table_add_text(table, fault->expected);
    table_add_text(table, fault->found);
    return true;
}

void verify_fault_real(const struct verifying *v, int64_t run, const char *what, const char *where, double expected,
                       double found)
{
    char words[2][40];
    snprintf(words[0], sizeof words[0], isnan(expected) ? "none" : "%.10g", expected);
    snprintf(words[1], sizeof words[1], isnan(found) ? "none" : "%.10g", found);
    verify_fault(v, &(struct verify_fault){run, what, where, words[0], words[1]});
}

/* The faults of what was checked last are those that no earlier row has counted. */
void verify_checked(const struct verifying *v, const char *what, int64_t checked)
{
    struct table *table = &v->verification->checked;
    int64_t faults = (int64_t)table_rows(&v->verification->faults);
    for (size_t row = 0; row < table_rows(table); row++)
        faults -= table_cell_at(table, row, 2)->integer;
    table_add_text(table, what);
    table_add_integer(table, checked);
    table_add_integer(table, faults);
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
    TRY(verify_rows(v, error));
    TRY(verify_metrics(v, error));
    TRY(verify_per_image(v, error));
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
    if (result == ERROR_FORMAT && error != NULL) {
        verify_fault(&v, &(struct verify_fault){0, "readable", "file", "all of it", error->message});
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
