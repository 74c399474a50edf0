#include "harness/commands/inputs/filter.h"

#include "harness/config/settings.h"

struct query_filter filter_read(const struct options *given)
{
    struct query_filter filter = {.incidental = settings_incidental};
    for (size_t i = 0; query_filter_name(i) != NULL; i++)
        *query_filter_text(&filter, i) = options_text(given, query_filter_name(i));
    return filter;
}

const char *filter_given(const struct options *given)
{
    for (size_t i = 0; query_filter_name(i) != NULL; i++)
        if (options_given(given, query_filter_name(i)))
            return query_filter_name(i);
    return NULL;
}
