/* A folder of fixtures/model: the model and its adapters, on the device of the replay. */
#pragma once

#include "adapters/files/adapter_file.h"
#include "models/class_head.h"
#include "models/clip.h"
#include "tests/replay/replay.h"

extern const char *const model_towers[TOWERS];

struct model {
    struct replay *r;
    struct arena step;
    struct clip *clip;
    struct adapters *adapters;
    struct step_state *state; /* device */
    float *loss;              /* device, one value */
};

/* Of the configuration; in bf16 what its products may add. */
double model_tolerance(const struct model *m, const char *key);

/* Images, prompts and labels as a fixture has them, and noise [blocks, B, E] of the routers; NULL: none. */
struct model_batch {
    const float *images;
    const int32_t *tokens, *labels;
    size_t sizes[TOWERS]; /* images and prompts */
    const float *noise[TOWERS];
};

/* One pass of both towers with router `task` (−1: adapters off). Everything is in the step arena. */
struct model_pass {
    struct encoding encoding[TOWERS];
    struct tower_pass passes[TOWERS];
    struct texts texts;
    struct tensor features[TOWERS];
    struct class_head head;
};
void model_encode(struct model *m, struct model_pass *pass, const struct model_batch *batch, int task, bool training);
void model_logits(struct model *m, struct model_pass *pass, float scale);

/* A step's passes, forward and back; its loss. */
float model_train(struct model *m, struct model_pass *pass, const struct model_batch *batch, int task);

/* Gates of a block [B, E] within tolerance, the set of chosen experts exact. */
void model_compare_gates(struct model *m, const char *quantity, const struct model_pass *pass, enum tower tower,
                         size_t block, const float *expected, const char *where);

void model_forward(struct model *m);
void model_gradients(struct model *m);
void model_trajectory(struct model *m);
void model_selector(struct model *m);
void model_metrics(struct model *m);
