/* Learning without Forgetting (Li & Hoiem 2016, arXiv 1606.09282) in ZSCL's form for CLIP:
 *
 *     loss = cross-entropy + D(t, s) + D(tᵀ, sᵀ)       D: guided.c
 *
 * The teacher is the model before the task. The references are the prompts of the task and other training images of it,
 * in the evaluation transform. ZSCL's code runs one extra iteration, as training.reference_iterations does.
 */
#include "core/scope.h"
#include "harness/methods/weights/guided.h"

static const struct option options[] = {GUIDED_OPTIONS, {0}};

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    return guided_begin_task(run, task, resumed, task->prompts, dataset_classes(task->dataset), error);
}

const struct method method_lwf = {
    .name = "lwf",
    .source = "Li & Hoiem, ECCV 2016; as in ZSCL, ICCV 2023",
    .formula =
        "loss = cross-entropy + image_weight · D(t, s) + text_weight · D(tᵀ, sᵀ); t: similarities of the task's images "
        "and prompts in the model before it; D(t, s) = T² · cross-entropy(softmax(t / T), softmax(s / T))",
    .options = options,
    .state_size = sizeof(struct guided),
    .open = guided_open_following,
    .close = guided_close,
    .begin_task = begin_task,
    .loss = guided_loss,
    .end_task = guided_end_task,
    .keep = guided_keep,
    GUIDED_HOOKS};

/* With a replayed vocabulary (Ding et al. 2022, arXiv 2207.09248): sentences of random tokens, drawn once per task, in
 * place of the task's prompts. The public code draws them from PyTorch's generator; here seed and task decide. */
static const struct option vr_options[] = {
    GUIDED_OPTIONS,
    OPTION_NUMBER(INTEGER, "sentences", 1, 1e6, "1000", "number of random reference texts"),
    OPTION_NUMBER(INTEGER, "words", 1, 1024, "10", "tokens of each reference text, between start and end"),
    {0}};

static status draw(struct reference_texts *texts, const struct method_run *run, size_t task, struct error *error)
{
    return reference_texts_draw(texts, run, task, method_whole(run, "sentences"), method_whole(run, "words"), error);
}

/* Sentences that do not fit the model are reported before anything is computed. */
static status open_teacher(struct method_run *run, struct error *error)
{
    SCOPED(reference_texts_free) struct reference_texts texts = {0};
    TRY(draw(&texts, run, 0, error));
    return guided_open_following(run, error);
}

static status begin_drawn(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    SCOPED(reference_texts_free) struct reference_texts texts = {0};
    TRY(draw(&texts, run, task->index, error));
    return guided_begin_task(run, task, resumed, texts.tokens, texts.count, error);
}

const struct method method_lwf_vr = {.name = "lwf_vr",
                                     .source = "Ding et al. 2022; as in ZSCL, ICCV 2023",
                                     .formula = "as lwf, with random sentences in place of the prompts",
                                     .options = vr_options,
                                     .state_size = sizeof(struct guided),
                                     .open = open_teacher,
                                     .close = guided_close,
                                     .begin_task = begin_drawn,
                                     .loss = guided_loss,
                                     .end_task = guided_end_task,
                                     .keep = guided_keep,
                                     GUIDED_HOOKS};
