/* A classifier is trained on the labels of one dataset: the image tower and the head (fine-tuning, or from scratch), or the head
 * alone on a frozen tower (a linear probe). With method.ffn, mixtures of experts take the place of the MLPs of some blocks,
 * and are trained with the rest. */
#include <math.h>
#include <string.h>

#include "adapters/experts/expert.h"
#include "adapters/merge.h"
#include "harness/methods/methods.h"
#include "harness/model/model.h"
#include "harness/train/services/merging.h"

enum { TRAIN_WEIGHTS, TRAIN_HEAD };
enum { FFN_DENSE };

static const struct option options[] = {
    OPTION_ONE_OF("train", "weights|head", "weights",
                  "trained parameters: the image tower and the head, or the head alone"),
    OPTION_ONE_OF("ffn", "dense|ewa|widenet|rmoe|moe", "dense",
                  "mixture in place of the MLPs: dense for none, or that of a paper, whose values become the defaults "
                  "of adapter and merge",
                  .incidental = "dense"),
    OPTION_NUMBER(REAL, "dropout", 0, 0.99, "0",
                  "dropout of the image tower in training: of the embeddings, the attention's output and both layers "
                  "of the MLPs or their experts",
                  .incidental = "0"),
    {0}};

/* --- Presets of method.ffn --- */

struct preset {
    const char *section, *key, *value;
};

/* Of all mixtures. There is one task, after which nothing is trained. */
static const struct preset common[] = {
    {"adapter", "kind", "ffn"},     {"adapter", "top_k", "1"},     {"adapter", "routing", "per_token"},
    {"adapter", "towers", "image"}, {"adapter", "routers", "one"}, {"adapter", "freeze", "none"},
    {"merge", "policy", "none"},    {"adapter", "start", "auto"},  {0}};

/* Huang et al. 2023, "Experts Weights Averaging", arXiv 2308.06093. */
static const struct preset ewa[] = {{"adapter", "experts", "4"},      {"adapter", "router", "random_uniform"},
                                    {"adapter", "blocks", "every_2"}, {"merge", "policy", "ewa"},
                                    {"merge", "ramp", "epoch"},       {0}};

/* Xue et al., "Go Wider Instead of Deeper", AAAI 2022. router_noise is 1 / experts. */
static const struct preset widenet[] = {{"model", "share_groups", "1"},
                                        {"head", "pool", "mean_patches"},
                                        {"adapter", "experts", "4"},
                                        {"adapter", "share_across_blocks", "1"},
                                        {"adapter", "router", "softmax_topk"},
                                        {"adapter", "top_k", "2"},
                                        {"adapter", "router_noise", "0.25"},
                                        {"adapter", "capacity", "1.2"},
                                        {"adapter", "balance_loss", "widenet"},
                                        {"adapter", "balance_weight", "0.01"},
                                        {0}};

/* Wu et al. 2022, "Residual Mixture of Experts", arXiv 2204.09636, at a downstream task. */
static const struct preset rmoe[] = {{"adapter", "experts", "8"},
                                     {"adapter", "start", "copies"},
                                     {"adapter", "init_noise", "0.01"},
                                     {"adapter", "router", "softmax_topk"},
                                     {"adapter", "blocks", "by_score_3"},
                                     {"adapter", "balance_loss", "rmoe"},
                                     {"adapter", "balance_weight", "0.0001"},
                                     {0}};

/* The mixture with a router that Huang et al. compare with, Table 5. */
static const struct preset moe[] = {{"adapter", "experts", "4"},
                                    {"adapter", "router", "softmax_topk"},
                                    {"adapter", "capacity", "1.05"},
                                    {"adapter", "blocks", "every_2"},
                                    {"adapter", "balance_loss", "widenet"},
                                    {"adapter", "balance_weight", "0.01"},
                                    {0}};

static const struct {
    const char *name;
    const struct preset *presets;
} mixtures[] = {{"ewa", ewa}, {"widenet", widenet}, {"rmoe", rmoe}, {"moe", moe}};

static const char *find_preset(const struct preset *presets, const char *section, const char *key)
{
    for (; presets->key != NULL; presets++)
        if (strcmp(presets->section, section) == 0 && strcmp(presets->key, key) == 0)
            return presets->value;
    return NULL;
}

const char *mixture_preset(const char *ffn, const char *section, const char *key)
{
    for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++)
        if (strcmp(mixtures[i].name, ffn) == 0) {
            const char *own = find_preset(mixtures[i].presets, section, key);
            return own != NULL ? own : find_preset(common, section, key);
        }
    return NULL;
}

/* --- Hooks --- */

static bool has_mixtures(const struct options *chosen)
{
    return options_choice(chosen, "ffn") != FFN_DENSE;
}

static unsigned groups(const struct options *chosen)
{
    unsigned tower = options_choice(chosen, "train") == TRAIN_WEIGHTS ? GROUP_IMAGE_TOWER : 0;
    return GROUP_HEAD | tower | (has_mixtures(chosen) ? GROUP_ADAPTERS : 0);
}

/* A preset cannot follow another key. */
static status check_noise(const struct settings *s, struct error *error)
{
    const struct options *adapter = s->freeze.options;
    double wanted = 1 / (double)s->adapter.experts;
    if (strcmp(options_text(s->method_options, "ffn"), "widenet") != 0 || options_given(adapter, "router_noise") ||
        fabs(wanted - options_real(adapter, "router_noise")) < 1e-6)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "suite: adapter.router_noise is %s by method.ffn widenet, whose paper has 1 / experts, but "
                     "adapter.experts is %zu; state it: adapter.router_noise=%.6g",
                     options_as_text(adapter, "router_noise"), s->adapter.experts, wanted);
}

static status check(const struct settings *s, struct error *error)
{
    const char *ffn = options_text(s->method_options, "ffn");
    if (options_choice(s->method_options, "train") == TRAIN_HEAD && options_real(s->method_options, "dropout") > 0)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: method.dropout is of a tower that is trained, but method.train is head; set "
                         "method.train=weights or method.dropout=0");
    if (!has_mixtures(s->method_options))
        return OK;
    if (options_choice(s->method_options, "train") == TRAIN_HEAD)
        return error_set(
            error, ERROR_ARGUMENT,
            "suite: method.train is head, but the mixtures of method.ffn %s are part of the tower and would "
            "not be trained; set method.train=weights or method.ffn=dense",
            ffn);
    if (expert_kind_of(&s->adapter)->place != REPLACES_MLP)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: adapter.kind is %s, whose experts stand beside the MLP, but method.ffn %s puts "
                         "mixtures in its place; set adapter.kind=ffn or method.ffn=dense",
                         expert_kind_of(&s->adapter)->name, ffn);
    if (s->adapter.place.towers != ADAPT_IMAGE)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: adapter.towers is %s, but a classifier has an image tower alone; set "
                         "adapter.towers=image",
                         adapted_towers_name(s->adapter.place.towers));
    if (strcmp(s->freeze.policy->name, "none") != 0)
        return error_set(error, ERROR_ARGUMENT,
                         "suite: adapter.freeze is %s, but experts are frozen after a task, and after the only one "
                         "nothing is trained; set adapter.freeze=none",
                         s->freeze.policy->name);
    return check_noise(s, error);
}

static status open_model(struct method_run *run, struct error *error)
{
    run->model->dropout = (float)options_real(run->options, "dropout");
    return merging_open(run, error);
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    if (!resumed)
        TRY(trained_groups_reset(run->model, error));
    return merging_begin_task(run, task, resumed, error);
}

const struct method method_supervised = {.name = "supervised",
                                         .source = "ViT, ICLR 2021",
                                         .formula = "loss = cross-entropy of the scores of the head",
                                         .options = options,
                                         .sections = {"merge", "combine"},
                                         .head = "linear",
                                         .state_size = sizeof(struct merging),
                                         .groups = groups,
                                         .check = check,
                                         .open = open_model,
                                         .close = merging_close,
                                         .begin_task = begin_task,
                                         .after_step = merging_after_step,
                                         .end_task = merging_end_task,
                                         .keep = merging_keep};
