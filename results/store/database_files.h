/* The files of a database beside and under a running program: FILE, FILE-wal and FILE-shm.
 *
 *     TRY(database_check_log(path, error));                     // before SQLite sees path
 *     TRY(database_files_watch(&files, full_path, sound, error));      // when it was opened for writing
 *     TRY(database_files_check(&files, error));                 // within a transaction, and after it
 *     TRY(database_files_check_pages(&files, error));           // at the end of a run
 *     database_files_free(&files);
 *
 * The files are opened only through SQLite, because closing a descriptor of them would drop its locks.
 */
#ifndef MTIL_RESULTS_STORE_DATABASE_FILES_H
#define MTIL_RESULTS_STORE_DATABASE_FILES_H

#include "results/store/presence.h"

enum { DATABASE_FILES = 3 };

struct database_files {
    struct presence file[DATABASE_FILES]; /* without paths: not watched */
    struct timespec changed;              /* when the first changed, as of the last check of its pages */
    bool (*sound)(const char *path);      /* whether the pages of the file fit together, read anew through SQLite */
};

/* Whether the file, or the folder for SQLite's log beside it, exists and is not writable. */
bool database_is_read_only(const char *path);

/* Whether the log beside the file holds rows. A database that was closed has none. */
bool database_has_log(const char *path);
bool database_has_empty_log(const char *path); /* there is one, without rows */

/* ERROR_IO when the file is missing or empty but has a log of another database beside it, which SQLite would apply or
 * delete. */
status database_check_log(const char *path, struct error *error);

/* Remembers the file. The caller frees, after a failure too. */
status database_files_watch(struct database_files *files, const char *path, bool (*sound)(const char *path),
                            struct error *error);

/* ERROR_IO when one of the files was deleted, renamed, replaced or cut since, because later commits would be lost. The
 * first call, in a transaction, remembers the other two files, which SQLite then keeps until it closes. */
status database_files_check(struct database_files *files, struct error *error);

/* The same, and ERROR_IO when the file was written since the last check and its pages no longer fit together, as when
 * another copy was written into it. */
status database_files_check_pages(struct database_files *files, struct error *error);
void database_files_free(struct database_files *files);

#endif
