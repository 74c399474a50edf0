/* The checks and the faults, row by row. */
#include <math.h>
#include <stdio.h>

#include "results/verify/internal.h"

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
