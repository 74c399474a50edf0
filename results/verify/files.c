/* Checks files that were written beside the database. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "core/digest.h"
#include "results/verify/internal.h"

/* The file itself is not opened unless it is a regular one of that size. */
static status check_artifact(const struct verifying *v, struct statement *row, int64_t *count, struct error *error)
{
    enum { RUN, PATH, BYTES, DIGEST };
    struct stat information;
    char found[DIGEST_SIZE];
    int64_t run = statement_integer(row, RUN);
    const char *path = statement_text(row, PATH), *digest = statement_text(row, DIGEST);
    if (stat(path, &information) != 0) {
        v->verification->missing_files++;
        return OK;
    }
    ++*count;
    if (!S_ISREG(information.st_mode) || information.st_size != statement_integer(row, BYTES)) {
        char sizes[2][40];
        snprintf(sizes[0], sizeof sizes[0], "%" PRId64 " bytes", statement_integer(row, BYTES));
        snprintf(sizes[1], sizeof sizes[1], "%" PRId64 " bytes", (int64_t)information.st_size);
        verify_fault(v, &(struct verify_fault){run, "files", path, sizes[0],
                                               S_ISREG(information.st_mode) ? sizes[1] : "no file"});
        return OK;
    }
    if (strlen(digest) != DIGEST_SIZE - 1)
        return OK;
    TRY(digest_file(path, found, error));
    if (strcmp(found, digest) != 0)
        verify_fault(v, &(struct verify_fault){run, "files", path, digest, found});
    return OK;
}

/* Of runs that nobody is writing. */
status verify_artifacts(const struct verifying *v, struct error *error)
{
    struct statement *rows;
    status result;
    int64_t count = 0;
    TRY(statement_open(&rows, v->store->database,
                       "SELECT run, path, bytes, digest FROM artifacts JOIN runs USING (run) WHERE status <> 'running'",
                       error));
    for (bool row; (result = statement_step(rows, &row, error)) == OK && row;) {
        if (!verify_wants(v, statement_integer(rows, 0)))
            continue;
        result = check_artifact(v, rows, &count, error);
        if (result != OK)
            break;
    }
    statement_close(rows);
    if (result == OK)
        verify_checked(v, "files", count);
    return result;
}
