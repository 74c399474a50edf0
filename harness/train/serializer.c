#include "harness/train/serializer.h"

status serializer_host(const struct serializer *p, const char *name, enum safetensor_type type, size_t count,
                       void *values, struct error *error)
{
    return p->saving ? archive_put(p->archive, name, type, count, values, error)
                     : archive_get(p->archive, name, type, count, values, error);
}

status serializer_device(const struct serializer *p, const char *name, enum safetensor_type type, size_t count,
                         void *device, struct error *error)
{
    return p->saving ? archive_put_device(p->archive, p->backend, name, type, count, device, error)
                     : archive_get_device(p->archive, p->backend, name, type, count, device, error);
}

status serializer_weights(const struct serializer *p, const char *name, struct parameters *group, struct error *error)
{
    float *values = p->saving ? (float *)group->values : parameters_write_all(group);
    return serializer_device(p, name, SAFETENSOR_F32, group->values_count, values, error);
}
