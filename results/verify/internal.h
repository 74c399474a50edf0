/* Shared by the files of this folder; other folders include verify.h alone. */
#ifndef MTIL_RESULTS_VERIFY_INTERNAL_H
#define MTIL_RESULTS_VERIFY_INTERNAL_H

#include "results/store/store_internal.h"
#include "results/verify.h"

struct verifying {
    struct store *store;
    struct verification *verification;
};

/* A fault; run 0: of the whole database. */
void verify_fault(const struct verifying *v, int64_t run, const char *what, const char *where, const char *expected,
                  const char *found);

/* Makes the tables that checks read, and runs the check of the schema, which comes first, because a missing table ends the
 * checks that read it, or all others. */
status verify_tables(const struct verifying *v, struct error *error);
status verify_checks(const struct verifying *v, bool of_schema, struct error *error);
int64_t verify_check_count(void);

/* What no check can read by SQL alone. They fill temporary tables and add faults of the runs in `looked_at`. */
status verify_schema(const struct verifying *v, struct error *error);
status verify_suites(const struct verifying *v, struct error *error);
status verify_metrics(const struct verifying *v, struct error *error);

#endif
