/* The settings of a run as plain values: the table of all sections, and their reading.
 *
 *     struct suite *suite;
 *     TRY(suite_load(&suite, "mini", settings_sections, overrides, count, error));
 *     struct settings settings;
 *     TRY(settings_read(&settings, suite, error));
 *     settings.merge.every …
 */
#ifndef MTIL_HARNESS_CONFIG_SETTINGS_H
#define MTIL_HARNESS_CONFIG_SETTINGS_H

#include "adapters/options.h"
#include "datasets/cache/cache.h"
#include "harness/config/suite.h"
#include "harness/scenario/partition.h"
#include "harness/scenario/task_settings.h"
#include "harness/selectors/selector_options.h"
#include "models/backend.h"
#include "models/vit.h"
#include "results/store/per_image.h"

extern const struct suite_section settings_sections[];

/* Whether a key of a stored suite, with that value, changes how a run is computed, not what: "run.threads". */
bool settings_incidental(const char *key, const char *value);

enum { SETTINGS_TASKS = 1024 }; /* at most in a suite */

enum checkpoints { CHECKPOINTS_LAST, CHECKPOINTS_ALL, CHECKPOINTS_NONE };

enum label_space_kind { LABEL_SPACE_TASK, LABEL_SPACE_ALL, LABEL_SPACE_SEEN };

enum cut { CUT_NONE, CUT_BY_LABELS, CUT_BY_ORDER };

/* How one dataset is cut into the tasks (harness/scenario/label_split.h). */
struct split_settings {
    enum cut cut;
    size_t parts;
    enum partition_goal goal; /* by labels */
    uint64_t seed;
    size_t first; /* by order: classes of the task before the parts; 0: there is none */
};

struct head;
struct method;

struct settings {
    const char *weights, *vocabulary, *data_root, *order, *setting;
    const struct options *model_options;
    struct clip_stated stated;   /* of the weights, by model.heads and model.activation */
    struct vit_settings scratch; /* with model.weights: scratch, without its pooling; else zeros */
    const struct head *head;     /* NULL: text */
    const struct options *head_options;
    struct split_settings split;
    size_t task_count, shots; /* shots: training images per class; 0: all */
    bool repeat_shots;        /* a class with fewer images repeats some, drawn at random */
    struct adapter_settings adapter;
    struct merge_plan merge;
    struct freeze_plan freeze;
    bool one_moment; /* no task's optimizer has a second moment */
    const struct method *method;
    const struct options *method_options;
    struct selector_settings selector;
    size_t evaluation_batch;     /* 0: see experiment.h */
    struct cache_settings cache; /* without its log */
    bool keep_features;
    enum per_image_kind per_image;
    size_t patch_images; /* evaluation.patch_images */
    enum label_space_kind label_space;
    struct backend_settings backend;
    const char *folder, *database;
    size_t threads, gpus, checkpoint_every, log_every;
    enum checkpoints checkpoints;
};

#define SETTINGS_DATABASE "results.db" /* run.database, unless a command says otherwise */

/* Strings and options are borrowed from the suite. Also checks conditions on several keys (top_k above experts, no
 * task). */
status settings_read(struct settings *settings, const struct suite *suite, struct error *error);
void settings_of_task(struct task_settings *task, const struct suite *suite, const char *name);
/* Warns, in one line, about allowed settings that are seldom meant, such as warm-up that is longer than training.
 * False: no warning. */
bool settings_warn(const struct suite *suite, const struct log *log);
bool settings_select(const struct settings *settings); /* whether a selector chooses the router at test time */

/* Seed number index, one run each. settings_check_seeds reports an empty list and invalid seeds before anything
 * starts. */
status settings_seed(const struct suite *suite, size_t index, uint64_t *seed, struct error *error);
size_t settings_seeds(const struct suite *suite);
status settings_check_seeds(const struct suite *suite, struct error *error);

#endif
