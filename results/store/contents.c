#include "results/store/contents.h"

#include "core/embedded.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(contents_script);

status contents_read(struct store *store, const char *runs, struct error *error)
{
    struct text view = {0};
    text_add(&view, "DROP VIEW IF EXISTS temp.valued; CREATE TEMP VIEW valued (place, run) AS %s", runs);
    status result = database_execute(store->database, view.data, error);
    NEXT(result, database_execute(store->database, (const char *)contents_script[0].data, error));
    text_free(&view);
    return result;
}
