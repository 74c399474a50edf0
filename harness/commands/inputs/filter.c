#include "harness/commands/inputs/filter.h"

#include "harness/run/settings.h"

struct query_filter filter_read(const struct options *given)
{
    return (struct query_filter){
        .incidental = settings_incidental,
        .run = options_given(given, "run") ? options_integer(given, "run") : 0,
        .suite = options_text(given, "suite"),
        .setting = options_text(given, "setting"),
        .method = options_text(given, "method"),
        .policy = options_text(given, "policy"),
        .selector = options_text(given, "selector"),
        .status = options_text(given, "status"),
        .dataset = options_text(given, "dataset"),
        .since = options_text(given, "since"),
        .before = options_text(given, "before"),
        .where = options_text(given, "where"),
        .has_seed = options_given(given, "seed"),
        .seed = options_given(given, "seed") ? options_integer(given, "seed") : 0,
    };
}

const char *filter_given(const struct options *given)
{
    static const struct option filters[] = {FILTER_OPTIONS};
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (options_given(given, filters[i].name))
            return filters[i].name;
    return NULL;
}
