/* DIKI (Tang et al., "Mind the Interference: Retaining Pre-trained Knowledge in Parameter Efficient Continual Learning of
 * Vision-Language Models", ECCV 2024): every task has keys and values of its own in the first blocks of both towers, and the
 * attention over them is added to that of the frozen model (adapters/prefixes.h). A test image takes those of the task whose
 * Gaussian of image features gives it the highest density, weighted by
 *
 *     σ(log N(x; μ_t, Σ_t) / D − 1),   D the width of the features,
 *
 * which is near 0 far from all tasks. The public code (lloongx/DIKI, 8ef89e7) is followed but for what depends on the batch of a
 * test image or on a validation split: there all images of a batch take the prefixes that most of them prefer, and prompts have the
 * mean of the batch's weights; here each image takes its own, and prompts have the mean over all images of the test set that take
 * the same ones. There the epoch that is best on held-out images is kept, here the last; there the rate falls to a thousandth of
 * its peak, here to 0; there tests have the first template of a dataset alone, here all, as those of every method; and there the
 * Gaussian is fitted to all training images, here to nine tenths of them (selectors/README.md).
 */
#include "harness/methods/methods.h"

static const struct option options[] = {
    OPTION_NUMBER(INTEGER, "prefix_length", 1, PREFIX_LENGTH, "8", "keys and values of a task in a block"),
    OPTION_NUMBER(INTEGER, "prefix_blocks", 1, CLIP_BLOCKS_MOST, "8",
                  "blocks of each tower that have them, from the first on; more than there are: all"),
    {0}};

static status open_diki(struct method_run *run, struct error *error)
{
    struct model *model = run->model;
    size_t blocks = (size_t)options_integer(run->options, "prefix_blocks");
    struct prefix_settings settings = {.tasks = run->data->task_count};
    for (int t = 0; t < TOWERS; t++) {
        settings.length[t] = (size_t)options_integer(run->options, "prefix_length");
        settings.blocks[t] = blocks < model->clip->towers[t].count ? blocks : model->clip->towers[t].count;
    }
    TRY(prefixes_create(&model->prefixes, model->backend, run->memory, &model->clip->dimensions, &settings,
                        model->settings.one_moment ? PARAMETERS_TRAINED_ONE_MOMENT : PARAMETERS_TRAINED, error));
    return prefixes_initialize(model->prefixes, model->seed, error);
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    return resumed ? OK : prefixes_begin_task(run->model->prefixes, task->index, error);
}

const struct method method_diki = {
    .name = "diki",
    .source = "DIKI, ECCV 2024",
    .formula = "attention = frozen + w · softmax(q Kᵀ / √c) V of prefix_length keys and values of "
               "task t in the first prefix_blocks; w = σ(log N(x; μ_t, Σ_t) / D − 1) in "
               "tests, 1 in training; loss = cross-entropy",
    .options = options,
    .sections = {"selector"},
    .trains = GROUP_PREFIXES,
    .open = open_diki,
    .begin_task = begin_task};
