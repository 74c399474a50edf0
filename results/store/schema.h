/* The schema of a results database: recognises and creates it.
 *
 *     int64_t version;
 *     TRY(schema_recognise(database, &version, error));     // refuses foreign and other files; 0: an empty file
 *     TRY(schema_create(database, error));
 *     TRY(schema_use_views(database, true, error));
 */
#ifndef MTIL_RESULTS_STORE_SCHEMA_H
#define MTIL_RESULTS_STORE_SCHEMA_H

#include <stdint.h>

#include "core/status.h"
#include "results/store/database.h"

/* SQLite's application_id: "MTIL". Files of before the first release have "mtil" in small letters. */
#define SCHEMA_APPLICATION 0x4d54494c
#define SCHEMA_BEFORE_RELEASE 0x6d74696c

enum { SCHEMA_VERSION = 1 }; /* SQLite's user_version */

/* *version: the file's, 0 when it is empty. ERROR_FORMAT for another program's database and for another schema. */
status schema_recognise(struct database *database, int64_t *version, struct error *error);

/* Creates the tables of an empty file, in one transaction with its version. */
status schema_create(struct database *database, struct error *error);

/* Replaces the database's views by this program's, if they differ, or hides them on this connection. */
status schema_use_views(struct database *database, bool replace, struct error *error);

#endif
