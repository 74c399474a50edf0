/* The schema of a results database: recognises it, its version, and upgrades it.
 *
 *     int64_t version;
 *     TRY(schema_recognise(database, &version, error));     // refuses foreign and newer files; 0: an empty file
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

/* SQLite's user_version after all of schema_files. */
int64_t schema_version(void);

/* *version: the file's, 0 when it is empty. ERROR_FORMAT for another program's database and for a newer schema. */
status schema_recognise(struct database *database, int64_t *version, struct error *error);

/* Runs the missing files, each in a transaction that also sets its version. */
status schema_upgrade(struct database *database, const struct embedded_file *files, struct error *error);

/* Replaces the database's views by this program's, if they differ. */
status schema_replace_views(struct database *database, struct error *error);

/* For reading a database whose views differ: this program's views hide them on this connection. */
status schema_overlay_views(struct database *database, struct error *error);

#endif
