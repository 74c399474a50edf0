/* Checks that a results database is consistent: rows with one another, derived values with their rows, kept files with
 * their digests.
 *
 *     struct verification verification = {.cells = cells_of_method};
 *     TRY(verify_database(store, &verification, error));
 *     … verification.faults: a row per fault; verification.checked: a row per check …
 *     verification_free(&verification);
 *
 * Nothing is written to the file. A condition is a part of a file of results/checks/, each row of whose answer is a fault.
 */
#pragma once

#include "results/store.h"
#include "results/store/database.h"
#include "results/table.h"

struct verification {
    /* Given. */
    const int64_t *runs; /* borrowed; ERROR_ARGUMENT for one that is not there */
    size_t count;        /* 0: all */
    /* The cells of the accuracy matrix that a finished run of a method has: "all", "trained" (all but zero-shot),
     * "diagonal", "last", "zero-shot", or "own" (all, zero-shot where it has any; its training is not described by settings);
     * NULL: all. */
    const char *(*cells)(const char *method);
    /* suite_said(suite_text, program_version) of the checks: {"hash": settings_hash, "settings": {"run.threads": "2", …}} as
     * JSON, without the hash where another state of the program wrote the text: then keys that both know are compared. {"refused":
     * why} for a text that is none, or nothing where it is of another version (states between two releases are one). NULL: settings
     * and hashes are not compared with it. */
    database_function *suite_said;
    /* Answered; zero-initialised is empty. */
    struct table faults;  /* run, what, where, expected, found */
    struct table checked; /* what, checked, faults (of all) */
    size_t missing_files; /* recorded files that no longer exist; not a fault */
};

/* OK with or without faults. A file that SQLite cannot read to its end is a fault, not a failure. The caller frees,
 * after a failure too. */
status verify_database(struct store *store, struct verification *verification, struct error *error);
void verification_free(struct verification *verification);
