/* Shared by the files of this folder; other folders include verify.h alone. */
#ifndef MTIL_RESULTS_VERIFY_INTERNAL_H
#define MTIL_RESULTS_VERIFY_INTERNAL_H

#include "results/store/store_internal.h"
#include "results/verify.h"

struct verifying {
    struct store *store;
    struct verification *verification;
};

/* A fault; run 0: of the whole database. verify_fault is false when the run is not to be checked. */
struct verify_fault {
    int64_t run;
    const char *what, *where, *expected, *found;
};
bool verify_fault(const struct verifying *v, const struct verify_fault *fault);

/* The same for numbers. */
void verify_fault_real(const struct verifying *v, int64_t run, const char *what, const char *where, double expected,
                       double found);

bool verify_wants(const struct verifying *v, int64_t run);
void verify_checked(const struct verifying *v, const char *what, int64_t checked);

/* In the order in which they are called: verify_checks reads what those before it put into temporary tables. */
status verify_schema(const struct verifying *v, struct error *error);
status verify_suites(const struct verifying *v, struct error *error);
status verify_metrics(const struct verifying *v, struct error *error);
status verify_per_image(const struct verifying *v, struct error *error);
status verify_checks(const struct verifying *v, struct error *error);
status verify_artifacts(const struct verifying *v, struct error *error);

#endif
