#include "harness/train/services/loss_mean.h"

#include <math.h>

enum { SUM, COUNT, ONE, SUMS };

status loss_mean_open(struct loss_mean *mean, const struct model *model, struct arena *arena, struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, arena, TENSOR_F32, "sums of the loss", 1, (size_t[]){SUMS}, error));
    mean->sums = memory.data;
    return loss_mean_clear(mean, model, error);
}

status loss_mean_clear(const struct loss_mean *mean, const struct model *model, struct error *error)
{
    const float empty[SUMS] = {[ONE] = 1};
    return model->backend->ops->upload(model->backend, mean->sums, empty, sizeof empty, error);
}

static status add(const struct loss_mean *mean, const struct model *model, const float *value, int to,
                  struct error *error)
{
    return model->backend->ops->multiply(model->backend,
                                         &(struct multiply){.n = 1,
                                                            .a = value,
                                                            .b = mean->sums + ONE,
                                                            .out = mean->sums + to,
                                                            .accumulate = true,
                                                            .guard = model->guard},
                                         error);
}

status loss_mean_add(const struct loss_mean *mean, const struct model *model, struct error *error)
{
    TRY(add(mean, model, model->loss, SUM, error));
    return add(mean, model, mean->sums + ONE, COUNT, error);
}

status loss_mean_take(const struct loss_mean *mean, const struct model *model, double *loss, struct error *error)
{
    float sums[SUMS];
    TRY(model->backend->ops->download(model->backend, sums, mean->sums, sizeof sums, error));
    *loss = sums[COUNT] > 0 ? (double)sums[SUM] / (double)sums[COUNT] : (double)NAN;
    return loss_mean_clear(mean, model, error);
}

status loss_mean_keep(const struct loss_mean *mean, const char *name, const struct serializer *serializer,
                      struct error *error)
{
    return serializer_device(serializer, name, SAFETENSOR_F32, SUMS, mean->sums, error);
}
