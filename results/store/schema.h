/* The shape of a results database: whose it is, how old it is, and how to bring it up to date.
 *
 *     int64_t version;
 *     TRY(schema_recognise(database, &version, error));     // refuses what is not ours or too new; 0: an empty file
 *     TRY(schema_upgrade(database, schema_files, error));
 *     TRY(schema_replace_views(database, error));
 */
#ifndef MTIL_RESULTS_STORE_SCHEMA_H
#define MTIL_RESULTS_STORE_SCHEMA_H

#include <stdint.h>

#include "core/embedded.h"
#include "core/status.h"
#include "results/store/database.h"

EMBEDDED_FILES(schema_files); /* file v brings version v to v + 1; the first is schema.sql */

#define SCHEMA_APPLICATION 0x6d74696c /* "mtil", SQLite's application_id */

/* What SQLite's user_version is after all of schema_files. */
int64_t schema_version(void);

/* *version: the file's, 0 when it is empty. ERROR_FORMAT for another program's database and for a newer schema. */
status schema_recognise(struct database *database, int64_t *version, struct error *error);

/* Runs the files that are missing, each in a transaction of its own with the version it leads to. */
status schema_upgrade(struct database *database, const struct embedded_file *files, struct error *error);

/* Makes the database's views those of this program, if they are not. */
status schema_replace_views(struct database *database, struct error *error);

/* For reading a database whose views differ: lays this program's over them, for this connection. */
status schema_overlay_views(struct database *database, struct error *error);

#endif
