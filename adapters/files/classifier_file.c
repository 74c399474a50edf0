#include "adapters/files/classifier_file.h"

#include "adapters/files/adapter_file.h"

status classifier_save(const struct clip *vit, const struct linear_head *head, const struct adapters *adapters,
                       const char *path, struct error *error)
{
    struct vit_content content;
    status result = vit_content_take(&content, vit, head, VIT_TIMM, path, error);
    NEXT(result, adapters_save(adapters,
                               &(struct adapter_extra){.tensors = content.tensors,
                                                       .tensor_count = content.tensor_count,
                                                       .metadata = content.metadata,
                                                       .metadata_count = VIT_METADATA},
                               path, error));
    vit_content_free(&content);
    return result;
}
