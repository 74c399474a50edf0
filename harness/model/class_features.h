/* Class features of a task's dataset: the prompts of all templates, each normalised, their mean normalised again.
 *
 *     TRY(class_features(model, task, router, &model->task_memory, NULL, &features, error));
 */
#pragma once

#include "harness/model/model.h"

#define EVALUATION_SCALE 100.0f /* logits are this multiple of the cosine, whatever the model's logit_scale */

size_t class_prompts(const struct task *task); /* classes · templates */

/* features [classes, embed] in the arena, with a router (−1: adapters off). chosen, unless NULL, receives the experts
 * of every prompt: host [prompts, text blocks, K]. */
status class_features(struct model *model, const struct task *task, int router, struct arena *arena, int32_t *chosen,
                      struct tensor *features, struct error *error);

/* The same on the host, without adapters: values [classes, embed], which the caller frees. */
status class_features_host(struct model *model, const struct task *task, float **values, struct error *error);

/* Features of texts without adapters, not normalised: tokens [count, context] and values [count, embed] on the host. */
status text_features_host(struct model *model, const int32_t *tokens, size_t count, float *values, struct error *error);
