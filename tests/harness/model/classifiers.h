/* Small classifiers: a linear head on a tower of two blocks that is drawn or read, of a dataset of four classes. */
#pragma once

#include "harness/model/model.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/train/plain.h"
#include "tests/harness/whole_run.h"

enum { CLASSES = 4, WIDTH = 64, HIDDEN = 4 * WIDTH };

#define LINEAR "head.name=linear", "method.name=supervised", "data.order=third", "tasks.third.iterations=24"
#define TINY "model.weights=scratch", "model.resolution=16", "model.patch=8", "model.width=64", "model.blocks=2"
#define SCRATCH LINEAR, TINY
/* With a method.ffn: a mixture in place of the MLP of block 1. */
#define MIXTURE "adapter.blocks=every_2", "adapter.experts=4", "adapter.top_k=1", "adapter.bottleneck=64"

/* Trains and tests one, with its rows in a.db; the file that it leaves. */
static inline char *classifier_file(struct small_run *run, const char *const *words)
{
    small_run_reopen(run, 1, words);
    must(whole_run(run, "a.db", NULL));
    return whole_run_weights(run);
}

static const char *const mlp_parts[] = {"c_fc.weight", "c_fc.bias", "c_proj.weight", "c_proj.bias"};
enum { PARTS = sizeof mlp_parts / sizeof *mlp_parts };

/* Of the MLP under that name, or the experts of that block. */
static inline const struct parameter *find_part(const struct parameters *group, size_t part, const char *name)
{
    return parameters_find(group, small_run_format("%s.%s", name, mlp_parts[part]));
}
