/* Shared by database.c and statement.c; others include database.h. */
#pragma once

#include <sqlite3.h>
#include <sys/stat.h>

#include "results/store/database.h"

enum { DATABASE_FILES = 4 };

struct database {
    sqlite3 *handle;
    char *path;
    bool writable;
    int patience;                     /* milliseconds */
    struct stat file[DATABASE_FILES]; /* FILE, -wal, -shm, -lock: as of the last check; zeros: not there */
    const struct stop *stop;          /* NULL: nobody asks to */
    bool writes;                      /* the statement that runs is finished in any case */
    int waited, lingered;             /* milliseconds for the lock of another, and of these since a request to stop */
};

struct statement {
    sqlite3_stmt *handle;
    struct database *database;
};

/* The one place where an SQLite code becomes a message. */
status database_fail(const struct database *database, int code, struct error *error);

/* Called by SQLite now and then during a long statement, which ends when it returns 1. */
int database_is_to_stop(void *database);
