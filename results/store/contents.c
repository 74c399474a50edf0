#include "results/store/contents.h"

#include "core/file.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(contents_script);

status contents_read(struct store *store, const char *runs, struct error *error)
{
    struct text script = {0};
    text_add(&script,
             "DROP TABLE IF EXISTS temp.valued; CREATE TEMP TABLE valued (place INTEGER PRIMARY KEY, run INTEGER);"
             " INSERT INTO valued %s",
             runs);
    status result = database_execute(store->database, script.data, error);
    NEXT(result, database_execute(store->database, (const char *)contents_script[0].data, error));
    text_free(&script);
    return result;
}
