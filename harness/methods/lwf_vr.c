/* LwF with a replayed vocabulary (Ding et al. 2022, arXiv 2207.09248): like lwf.c, but with sentences of random
 * tokens, drawn once per task, in place of the task's prompts. The public code draws them from PyTorch's generator;
 * here seed and task decide. */
#include "harness/methods/guided.h"
#include "harness/train/services/reference_texts.h"

static const struct option options[] = {GUIDED_OPTIONS,
                                        {.name = "sentences",
                                         .type = OPTION_INTEGER,
                                         .minimum = 1,
                                         .maximum = 1e6,
                                         .fallback = "1000",
                                         .help = "number of random reference texts"},
                                        {.name = "words",
                                         .type = OPTION_INTEGER,
                                         .minimum = 1,
                                         .maximum = 1024,
                                         .fallback = "10",
                                         .help = "tokens of each reference text, between start and end"},
                                        {0}};

static status draw(struct reference_texts *texts, const struct method_run *run, size_t task, struct error *error)
{
    return reference_texts_draw(texts, run, task, (size_t)options_integer(run->options, "sentences"),
                                (size_t)options_integer(run->options, "words"), error);
}

/* Sentences that do not fit the model are reported before anything is computed. */
static status open_teacher(struct method_run *run, struct error *error)
{
    struct reference_texts texts = {0};
    TRY(draw(&texts, run, 0, error));
    reference_texts_free(&texts);
    return guided_open_following(run, error);
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct reference_texts texts = {0};
    status result = draw(&texts, run, task->index, error);
    NEXT(result, guided_begin_task(run, task, resumed, texts.tokens, texts.count, error));
    reference_texts_free(&texts);
    return result;
}

const struct method method_lwf_vr = {.name = "lwf_vr",
                                     .source = "Ding et al. 2022; as in ZSCL, ICCV 2023",
                                     .formula = "as lwf, with random sentences in place of the prompts",
                                     .options = options,
                                     .state_size = sizeof(struct guided),
                                     .open = open_teacher,
                                     .close = guided_close,
                                     .begin_task = begin_task,
                                     .loss = guided_loss,
                                     .end_task = guided_end_task,
                                     .keep = guided_keep,
                                     GUIDED_HOOKS};
