/* The settings of a run as plain values, which every room reads. harness/run/settings.h reads them from a suite. */
#pragma once

#include "adapters/deltas.h"
#include "adapters/options.h"
#include "datasets/cache/cache.h"
#include "harness/config/suite.h"
#include "models/backend.h"
#include "models/vit.h"
#include "results/store/per_image.h"

enum { SETTINGS_TASKS = 1024 }; /* at most in a suite */

enum checkpoints { CHECKPOINTS_LAST, CHECKPOINTS_ALL, CHECKPOINTS_NONE, CHECKPOINTS_STATES /* and all weights */ };

enum label_space_kind { LABEL_SPACE_TASK, LABEL_SPACE_ALL, LABEL_SPACE_SEEN, LABEL_SPACE_OPEN };

enum cut_kind { CUT_NONE, CUT_BY_LABELS, CUT_BY_ORDER };

/* Similar classes together, apart, at random, or together in half of the tasks. */
enum partition_goal { PARTITION_TOGETHER, PARTITION_APART, PARTITION_RANDOM, PARTITION_MIXED };

/* How one dataset is cut into the tasks (harness/scenario/label_split.h). */
struct split_settings {
    enum cut_kind cut;
    size_t parts;
    enum partition_goal goal; /* by labels */
    uint64_t seed;
    size_t first; /* by order: classes of the task before the parts; 0: there is none */
};

struct head;
struct method;
struct selector_kind;

/* Values of the section `selector`. */
enum selector_decision { DECIDE_PER_IMAGE, DECIDE_PER_BATCH };

struct selector_settings {
    const struct selector_kind *kind;
    enum selector_decision decision;
    size_t decision_batch, code, iterations, batch;
    double rate, l2, quantile, threshold; /* threshold 0: the quantile of each task's held-out errors */
    double shrinkage;
    const char *alexnet, *unrelated; /* paths; NULL: not given */
};

struct settings {
    const char *weights, *vocabulary, *data_root, *order, *setting;
    const struct options *model_options;
    struct clip_stated stated;   /* of the weights, by model.heads and model.activation */
    struct vit_settings scratch; /* with model.weights: scratch, without its pooling; else zeros */
    const struct head *head;     /* NULL: text */
    bool without_model;          /* no model computes anything: no weights are loaded */
    bool own_classes;            /* the method's (harness/train/method.h) */
    bool imported;               /* nothing is computed here at all: results come from files (harness/run/imported.h) */
    const struct options *head_options;
    struct split_settings split;
    size_t task_count, shots; /* shots: most training images per class of a task; 0: every task has all */
    bool shared_classes;      /* classes of one name are one class in all tasks, each of which has all of them */
    bool repeat_shots;        /* a class with fewer images repeats some, drawn at random */
    struct adapter_settings adapter;
    struct delta_settings delta; /* of methods that train deltas */
    struct merge_plan merge;
    struct freeze_plan freeze;
    bool one_moment; /* no task's optimizer has a second moment */
    const struct method *method;
    const struct options *method_options;
    struct selector_settings selector;
    size_t evaluation_batch;     /* 0: chosen by model_choose_batch */
    struct cache_settings cache; /* without its log */
    bool keep_features;
    enum per_image_kind per_image;
    size_t patch_images; /* evaluation.patch_images */
    enum label_space_kind label_space;
    struct backend_settings backend;
    const char *folder, *database;
    size_t threads, gpus, checkpoint_every, log_every, trajectory_every;
    enum checkpoints checkpoints;
};
