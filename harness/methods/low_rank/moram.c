/* MoRAM (Lu et al., "Little by Little: Continual Learning via Incremental Mixture of Rank-1 Associative Memory Experts", ICML
 * 2026, arXiv 2506.21035): every task adds `rank` experts of rank one to each matrix, which choose themselves by their keys
 * (adapters/gates/rank_one.c); those of earlier tasks compete, but are not trained. Evaluation needs no task.
 *
 * Its public code (Artificer-AI-Lab/MoRAM, XTAIL/) adds a loss from the prompts of all classes seen so far to the images of the
 * batch; here the loss is the cross-entropy of the images over the classes of the task alone. The code takes at least two experts,
 * whatever its top_k. */
#include "adapters/deltas.h"
#include "harness/methods/methods.h"
#include "harness/model/model.h"

static const struct option options[] = {
    OPTION_NUMBER(INTEGER, "top_k", 2, 4096, "16",
                  "experts of a token in each matrix, among those of all tasks so far"),
    OPTION_NUMBER(REAL, "temperature", 1e-4, 1e4, "0.01", "temperature of the softmax over the experts of a token"),
    OPTION_NUMBER(REAL, "threshold", 0, 1, "0.2", "least unit projection of an expert in use in evaluation"),
    {0}};

static status open_gate(struct method_run *run, struct error *error)
{
    float *numbers = run->model->deltas->settings.gate_numbers;
    numbers[RANK_ONE_TOP_K] = (float)options_integer(run->options, "top_k");
    numbers[RANK_ONE_TEMPERATURE] = (float)options_real(run->options, "temperature");
    numbers[RANK_ONE_THRESHOLD] = (float)options_real(run->options, "threshold");
    return OK;
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    TRY(deltas_begin_task(run->model->deltas, task->index, 0, DELTA_A | DELTA_B, error));
    return resumed ? OK : trained_groups_reset(run->model, error);
}

const struct method method_moram = {
    .name = "moram",
    .source = "Lu et al., ICML 2026",
    .formula =
        "y = W x + Σ w_i (a_i · x) b_i over the rows of all tasks, w = softmax(n / temperature) over the top_k "
        "largest of n = (a · x) / ‖a · x‖, 0 in evaluation where n is below threshold; task t trains its own rows",
    .options = options,
    .gate = &gate_rank_one,
    .trains = GROUP_DELTAS,
    .open = open_gate,
    .begin_task = begin_task};
