/* Passes images through a model in inference, batch by batch. Full batches are recorded operations (repeated.h), and the results
 * of a batch come to the host while the next one is computed.
 *
 *     struct image_pass pass = {.model = model, .data = data, .images = &loader_settings, .count = n, .bytes = bytes, .name = "aircraft",
 *                               .encode = encode, .keep = keep, .context = &x};
 *     TRY(image_pass_run(&pass, error));
 */
#pragma once

#include "harness/train/batches.h"

/* Tensors of a batch in the step's arena, which come to the host one behind the other. */
enum { IMAGE_RESULTS = 3 };
struct image_results {
    size_t count;
    struct tensor list[IMAGE_RESULTS];
};

struct image_pass {
    struct model *model;
    const struct data *data;
    const struct loader_settings *images; /* in order */
    size_t count, bytes;                  /* of the images; of the results of one, at most */
    const char *name;                     /* of the task, for messages */
    const struct stop *stop;              /* polled before every batch; NULL: never */
    bool plainly;                         /* encode also works on the host, so it is not recorded */
    /* The operations of a batch, the same ones for batches of one size. */
    status (*encode)(void *context, const struct batch *batch, struct image_results *results, struct error *error);
    /* The results of `count` images from the first-th on, which are valid during the call. */
    status (*keep)(void *context, size_t first, size_t count, const void *results, struct error *error);
    void *context;
};

status image_pass_run(const struct image_pass *pass, struct error *error);
