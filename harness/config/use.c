/* A suite that uses another one: the other's values come first, so that the suite's own replace them. */
#include <stdio.h>
#include <string.h>

#include "harness/config/internal.h"
#include "harness/config/library.h"

static bool has_rows(const struct suite_source *source)
{
    for (size_t i = 0; i < source->count; i++)
        if (source->assignments[i].section == &suite_rows_section)
            return true;
    return false;
}

static status read_used(const struct suite_source *source, struct suite_source *used, struct error *error)
{
    char where[512];
    snprintf(where, sizeof where, "%s:%zu: use", source->file, source->use_line);
    for (size_t i = 0; i < suite_library_size(); i++) {
        struct shipped_suite shipped = suite_library_get(i);
        if (strcmp(shipped.name, source->use) != 0)
            continue;
        TRY(suite_source_read_alone(used, shipped.text, shipped.size, error));
        return used->use == NULL ? OK
                                 : error_set(error, ERROR_ARGUMENT, "%s: the suite %s uses %s itself; use that one",
                                             where, shipped.name, used->use);
    }
    return suite_unknown(where, source->use, false, error);
}

/* The last value of a key is its value. Of rows the file has its own or the other's. */
static status join(struct suite_source *source, struct suite_source *used, struct error *error)
{
    bool own_rows = has_rows(source);
    struct suite_source own = *source;
    *source = (struct suite_source){.file = own.file, .sections = own.sections, .use = own.use};
    own.use = NULL;
    status result = OK;
    for (size_t i = 0; i < used->count; i++) {
        used->assignments[i].file = source->use;
        if (!own_rows || used->assignments[i].section != &suite_rows_section)
            NEXT(result, suite_source_add(source, &used->assignments[i], error));
    }
    for (size_t i = 0; i < own.count; i++)
        NEXT(result, suite_source_add(source, &own.assignments[i], error));
    suite_source_free(&own);
    return result;
}

status suite_source_read(struct suite_source *source, const char *text, size_t size, struct error *error)
{
    TRY(suite_source_read_alone(source, text, size, error));
    if (source->use == NULL)
        return OK;
    struct suite_source used = {.file = source->use, .sections = source->sections};
    status result = read_used(source, &used, error);
    NEXT(result, join(source, &used, error));
    suite_source_free(&used);
    return result;
}
