#include "results/query/published.h"

#include "core/embedded.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(published_files);

status published_attach(struct store *store, struct error *error)
{
    if (store->published)
        return OK;
    TRY(database_execute(store->database, "SAVEPOINT published", error));
    status result = OK;
    for (const struct embedded_file *file = published_files; file->name && result == OK; file++)
        result = database_execute(store->database, (const char *)file->data, error);
    if (result != OK) {
        database_execute(store->database, "ROLLBACK TO published; RELEASE published", NULL);
        return error_context(error, "published numbers");
    }
    store->published = true;
    return database_execute(store->database, "RELEASE published", error);
}
