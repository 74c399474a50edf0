#include "core/json.h"

#include <errno.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"

status json_parse(json_t **root, const void *data, size_t size, const char *name, struct error *error)
{
    json_error_t wrong;
    const char *text = data;
    text_skip_mark(&text, &size);
    errno = 0;
    *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &wrong);
    if (*root != NULL)
        return OK;
    error_set(error, ERROR_FORMAT, "%s:%d:%d: expected JSON: %s", name, wrong.line, wrong.column, wrong.text);
    return memory_blame(ERROR_FORMAT, name, error);
}

status json_read(json_t **root, const char *path, size_t limit, struct error *error)
{
    SCOPED(bytes_free) struct bytes bytes = {0};
    *root = NULL;
    TRY(file_read(path, limit, &bytes, error));
    return json_parse(root, bytes.data, bytes.size, path, error);
}
