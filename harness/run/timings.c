/* How long the phases of a run take, and what memory they need. */
#include <sys/resource.h>

#include "core/clock.h"
#include "harness/run/run.h"
#include "harness/run/session.h"

/* The peak of this process, and of the program that is the method. */
static int64_t peak_bytes(const struct session *s)
{
    struct rusage usage;
    const struct method_own *own = s->run->model.settings.method->own;
    int64_t bytes = getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
    return bytes + (own != NULL ? (int64_t)own->peak(&s->run->method) : 0);
}

static status record_resources(struct session *s, int64_t task, const char *phase, struct error *error)
{
    const struct feature_cache *cache = s->evaluator != NULL ? s->evaluator->cache : NULL;
    size_t encoded = cache != NULL ? cache->images_encoded - s->encoded : 0, device = s->run->model.backend->peak;
    double encoding = cache != NULL ? cache->encoding - s->encoding : 0;
    s->encoded += encoded;
    s->encoding += encoding;
    return encoded + device == 0 ? OK
                                 : store_add(s->sequence->store, s->recorder.id, "resources",
                                             NAMED({"task", value_integer(task)}, {"phase", value_text(phase)},
                                                   {"encoded", value_count((int64_t)encoded)},
                                                   {"encoding", encoded > 0 ? value_real(encoding) : value_null()},
                                                   {"device_bytes", value_count((int64_t)device)}),
                                             error);
}

status session_record_time(struct session *s, int64_t task, int64_t iteration, const char *phase, double since,
                           int64_t iterations, int64_t images, struct error *error)
{
    TRY(store_add(s->sequence->store, s->recorder.id, "timings",
                  NAMED({"task", value_integer(task)}, {"iteration", value_integer(iteration)},
                        {"phase", value_text(phase)}, {"seconds", value_real(clock_seconds() - since)},
                        {"iterations", value_count(iterations)}, {"images", value_count(images)},
                        {"peak_bytes", value_count(peak_bytes(s))}),
                  error));
    return record_resources(s, task, phase, error);
}
