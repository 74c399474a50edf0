/* Prefixes of DIKI (Tang et al., "Mind the Interference: Retaining Pre-trained Knowledge in Parameter Efficient Continual
 * Learning of Vision-Language Models", ECCV 2024): in the first blocks of a tower, every task has keys and values of its own, and
 * the attention over them is added to the frozen one (struct prefix_attention). A sample uses those of its router.
 *
 *     struct prefixes *prefixes;
 *     struct prefix_settings settings = {.tasks = 11, .length = {8, 8}, .blocks = {8, 8}};
 *     TRY(prefixes_create(&prefixes, backend, &model_arena, &dimensions, &settings, PARAMETERS_TRAINED, error));
 *     TRY(prefixes_initialize(prefixes, seed, error));
 *     TRY(prefixes_begin_task(prefixes, task, error));
 *     encoding.attention = prefixes_hooks(prefixes, TOWER_IMAGE);           // and encoding.router
 *
 * Prefixes with gates (adapters/gated_prefixes.h) take part in all of this but prefixes_initialize.
 *
 *     TRY(prefixes_save(prefixes, &extra, "adapters.safetensors", error));
 *     if (prefix_file_is(file))
 *         TRY(prefixes_open(&prefixes, clip, &arena, file, error));
 */
#pragma once

#include "adapters/files/group_file.h"
#include "models/clip.h"
#include "models/files/clip_file.h"

struct prefix_settings {
    size_t tasks, length[TOWERS], blocks[TOWERS]; /* length: keys of a task; blocks: the first ones, 0: none */
    size_t heads[TOWERS], rank; /* gates: the most heads of a task, 0: keys and softmax; rank of the deltas */
    size_t positions[TOWERS];   /* of a sample, where there are gates */
    float dropout;              /* of the deltas, in training */
};

/* The tensors of a block with gates; of all tasks but for `down`, which they share. n: length, h: heads. */
enum gated_tensor {
    GATED_VALUES,   /* [tasks, n, width] */
    GATED_SCORES,   /* [tasks, h · n, width] */
    GATED_BIAS,     /* [tasks, positions, h · n] */
    GATED_UP,       /* [tasks, width, rank] */
    GATED_UP_BIAS,  /* [tasks, width] */
    GATED_DOWN,     /* [1, rank, width], not trained like those that follow */
    GATED_HEADS,    /* [tasks, 1] in use */
    GATED_MEAN,     /* [tasks, h · n] */
    GATED_VARIANCE, /* likewise */
    GATED_TENSORS
};

/* One block. */
struct prefix_layer {
    struct prefixes *prefixes;
    enum tower tower;
    size_t block,
        index; /* index: of its tensor [tasks, 2, length, width], keys and values; with gates of the first one */
};

struct prefixes {
    struct backend *backend;
    struct prefix_settings settings;
    struct parameters *parameters; /* of both towers; flag t governs task t */
    struct {
        size_t blocks; /* with and without prefixes */
        struct prefix_layer *layers;
        struct attention_hook *hooks; /* [blocks] */
        const float *weights;         /* device [B], of the samples that are encoded next; NULL: 1 */
    } towers[TOWERS];
    float text_weight;   /* of prompts in evaluation; 1 at first */
    int trained, tested; /* with gates, the task of all samples: tested, or −1, then trained */
    float *seen; /* device [image blocks, B, heads · length]: receives the scores of class tokens; NULL: not wanted */
};

/* ERROR_ARGUMENT where a tower has fewer blocks. */
status prefixes_create(struct prefixes **prefixes, struct backend *backend, struct arena *arena,
                       const struct clip_dimensions *dimensions, const struct prefix_settings *settings,
                       enum parameters_mode mode, struct error *error);
void prefixes_destroy(struct prefixes *prefixes); /* NULL is allowed */

/* Keys uniform in ± 1, as the public code draws them, values zero: a fresh prefix adds nothing. Drawn with RNG_INIT. */
status prefixes_initialize(struct prefixes *prefixes, uint64_t seed, struct error *error);

/* NULL: the tower has none. Valid as long as the prefixes. */
const struct attention_hook *prefixes_hooks(const struct prefixes *prefixes, enum tower tower);

/* Starts a fresh optimizer; from now on the prefixes of this task alone are trained. */
status prefixes_begin_task(struct prefixes *prefixes, size_t task, struct error *error);

/* A safetensors file has the keys and values of task 0 as "visual.transformer.resblocks.3.attn.prefix_pool.0" [2,
 * length, width]. The text tower's names have no "visual.". */

/* Writes the prefixes of all tasks. A value that is not finite is an error, and nothing is written. */
status prefixes_save(const struct prefixes *prefixes, const struct group_extra *extra, const char *path,
                     struct error *error);

bool prefix_file_is(const struct safetensors *file);

/* Opens prefixes for inference, with the tasks, blocks and lengths of the file. Existing prefixes of the same sizes
 * get the file's values; NULL: new ones are created. After a failure the caller destroys *prefixes. */
status prefixes_open(struct prefixes **prefixes, const struct clip *clip, struct arena *arena,
                     const struct safetensors *file, struct error *error);
