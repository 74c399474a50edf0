#include "harness/run/passage.h"

status passage_host(const struct passage *p, const char *name, enum safetensor_type type, size_t count, void *values,
                    struct error *error)
{
    return p->saving ? archive_put(p->archive, name, type, count, values, error)
                     : archive_get(p->archive, name, type, count, values, error);
}

status passage_device(const struct passage *p, const char *name, enum safetensor_type type, size_t count, void *device,
                      struct error *error)
{
    return p->saving ? archive_put_device(p->archive, p->backend, name, type, count, device, error)
                     : archive_get_device(p->archive, p->backend, name, type, count, device, error);
}

status passage_weights(const struct passage *p, const char *name, struct parameters *group, struct error *error)
{
    float *values = p->saving ? (float *)group->values : parameters_write_all(group);
    return passage_device(p, name, SAFETENSOR_F32, group->values_count, values, error);
}
