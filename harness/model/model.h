/* A model on a device, with the memory for computing with it: towers, head and adapters. Its settings, seed and groups
 * determine which one.
 *
 *     struct model model = {.settings = settings, .seed = seed, .groups = GROUP_ADAPTERS, .log = log};
 *     TRY(model_open(&model, error));
 *     TRY(model_open_tokenizer(&model, error));
 *     TRY(model_open_head(&model, classes, error));                      // once the tasks are known
 *     model_close(&model);
 *
 * The groups of parameters that are trained are one table, over which optimizer, guard, resume files, replicas and memory
 * estimates iterate. A new group is a bit of enum parameter_group, a row in model.c and the file of its parameters.
 *
 *     struct trained_group group;
 *     for (size_t i = 0; trained_group_at(model, i, &group); i++)
 *         TRY(parameters_reset(group.parameters, error));
 */
#pragma once

#include "adapters/adapter.h"
#include "adapters/deltas.h"
#include "adapters/prefixes.h"
#include "core/file.h"
#include "core/option.h"
#include "core/status.h"
#include "core/threads.h"
#include "harness/config/settings.h"
#include "harness/model/head.h"
#include "harness/scenario/witness.h"
#include "models/class_head.h"
#include "models/clip.h"
#include "models/tokenizer.h"

/* Bits of a set. Adapters: experts and routers of both towers. Towers: their weights; logit_scale belongs to neither
 * and is never trained. Head: its own weights, if any (model/head.h). Deltas: low-rank updates of the towers' matrices
 * (adapters/deltas.h). Prefixes: keys and values beside frozen towers (adapters/prefixes.h).
 * Adapters, deltas and prefixes are trained alone; experts that replace MLPs may be trained with the rest of the tower. */
enum parameter_group {
    GROUP_ADAPTERS = 1,
    GROUP_IMAGE_TOWER = 2,
    GROUP_TEXT_TOWER = 4,
    GROUP_HEAD = 8,
    GROUP_DELTAS = 16,
    GROUP_PREFIXES = 32
};
/* GROUPS_WEIGHTS: the groups whose training changes the towers for every image, whatever its router. */
enum {
    GROUPS_NONE = 0,
    GROUPS_TOWERS = GROUP_IMAGE_TOWER | GROUP_TEXT_TOWER,
    GROUPS_WEIGHTS = GROUPS_TOWERS | GROUP_DELTAS
};

/* Whether the trained weights stand beside frozen towers, and therefore have files of their own. */
bool groups_beside_towers(unsigned groups);

/* For methods whose groups the suite chooses: their keys, and the groups of method.train. */
extern const struct option groups_options[];
unsigned groups_chosen(const struct options *options);

enum { LOSS_RIGHT = 2, LOSS_TERMS = 4 };

/* The rank of a model among the replicas that train together on several GPUs (harness/train/replicas.h). */
struct distributed_work {
    struct replicas *replicas;   /* NULL: there are no other ranks */
    struct process_group *group; /* likewise */
    size_t rank, ranks;          /* 0 and 0: likewise */
};

enum { PLANNED_TOKENS = 16 }; /* of a prompt, where there is no vocabulary */

struct model {
    struct settings settings;
    bool
        planned; /* to estimate: missing weights, vocabulary and datasets are replaced by their published sizes, without contents */
    uint64_t seed;
    const struct log *log;
    const char *folder;      /* of the run's files; NULL: it has none */
    const struct stop *stop; /* polled by long operations that take no stop of their own; NULL: never */
    struct backend *backend;
    struct arena memory, task_memory, step_memory; /* of the run, a task, a step; method.h says when each is reset */
    struct arena text_memory; /* of a training step's texts, whose tower runs beside the image tower; heads reset it */
    struct clip *clip;
    const struct head *head;
    void *head_state;          /* the head's own; NULL: none */
    struct adapters *adapters; /* NULL unless the method trains them or the caller opened some */
    struct deltas *deltas;     /* likewise */
    struct prefixes *prefixes; /* likewise */
    struct clip *peer;         /* an image tower that is trained beside, and its layer; NULL: none */
    struct linear_head *peer_head;
    struct tokenizer *tokenizer;
    float dropout;                                /* of the image tower in training; the method sets it */
    struct witness weights_read, vocabulary_read; /* of the files when they were read */
    unsigned groups;                              /* trained groups: set of enum parameter_group */
    float logit_scale;       /* exp of the parameter, read when a task of the head `text` begins; no method trains it */
    size_t evaluation_batch; /* test images encoded at a time: model_choose_batch */
    double waited;           /* seconds in which it waited for images */
    struct distributed_work work;
    /* of training */
    struct step_state *state; /* device */
    /* device, LOSS_TERMS values: of the step; of all balance losses without their weight; from LOSS_RIGHT on the images of its
     * cross-entropy that are classified rightly, and all of them */
    float *loss;
    struct step_guard *guard;       /* device; guard.h */
    int32_t *found;                 /* device, one value: set where a value is not finite */
    int32_t *counts_before[TOWERS]; /* device: the experts' selection counts before a step */
    /* of the task being trained, in the task's arena */
    struct head_classes classes;
    const int32_t *routers; /* device: the task's for every image */
};

/* Loads the towers and draws the adapters' initial values. After a failure, model_close. */
status model_open(struct model *model, struct error *error);
status model_open_tokenizer(struct model *model, struct error *error); /* where classes are texts */
/* To be called after the tasks were opened; classes: of all tasks together. */
status model_open_head(struct model *model, size_t classes, struct error *error);
void model_close(struct model *model); /* the tokenizer stays */

/* Restores the initial weights of the run, of the whole model or of the adapters (none frozen). For methods that train
 * every task alone. */
status model_restart(struct model *model, struct error *error);

/* Chooses evaluation_batch: run.evaluation_batch, or as many test images as half of the free device memory holds, a
 * power of two of at most 512; 64 on the CPU. */
void model_choose_batch(struct model *model);

/* Sets learning rate, task and step for the operations of a step. */
status model_set_step(struct model *model, size_t task, size_t step, double rate, struct error *error);

/* n times value in device memory of the arena. */
status model_fill(struct model *model, struct arena *arena, size_t n, int32_t value, const int32_t **filled,
                  struct error *error);

/* Whether all of values [n], on the device, are finite. Waits for the device. */
status model_finite(const struct model *model, const float *values, size_t n, bool *finite, struct error *error);

/* out [n, m] = a [n, width] · bᵀ, b [m, width]; all on the host. In the step's arena, which is reset. */
status model_products(struct model *model, const float *a, size_t n, const float *b, size_t m, size_t width, float *out,
                      struct error *error);

/* The number of routers that images choose from, and the router of a task, of adapters or prefixes; 0 and −1 where
 * there are none. */
size_t model_routers(const struct model *model);
int model_router(const struct model *model, size_t task);

/* Width of the features of images. */
size_t model_feature_width(const struct model *model);

/* The model's name in results: the file name of the weights without folder and extension. The caller frees. */
char *model_name(const struct model *model);

/* The device that it computes on, "cpu" or "cuda"; without a model, the device that its method is to use. */
const char *model_device(const struct model *model);

struct trained_group {
    const char *name; /* of its arrays in a resume file */
    struct parameters *parameters;
};

/* The groups that are trained, in a fixed order. False past the last one. */
bool trained_group_at(const struct model *model, size_t index, struct trained_group *group);

/* The encoding of a training step with a tower: with adapters and the samples' routers if adapters are trained, with
 * gradients if anything of the tower is trained. Each tower has an arena of its own. */
void trained_encoding(struct model *model, enum tower tower, const int32_t *routers, struct encoding *encoding);

/* Values that an update can change. */
size_t trained_values(const struct model *model);

/* Starts a fresh optimizer for all trained groups. */
status trained_groups_reset(const struct model *model, struct error *error);
