/* The keys of a suite for the training of a task. */
#pragma once

#include "datasets/augment/augment.h"
#include "harness/config/suite.h"
#include "models/parameters.h"

/* What to do with a training step whose loss or gradients are not finite. */
enum on_nan { ON_NAN_STOP, ON_NAN_SKIP };

/* The settings of one task, from its entry under `tasks`. */
struct task_settings {
    const char *name, *reader, *root, *template; /* template NULL: the dataset's own */
    size_t iterations, warmup, batch;
    size_t epochs;        /* 0: iterations are given */
    size_t warmup_epochs; /* 0: warmup is given in iterations */
    size_t epoch_length;  /* iterations of a pass over the training images */
    size_t schedule_end;  /* where the cosine reaches 0; `iterations` − 1 with reference_iterations */
    double rate;
    struct update_rule rule; /* of the optimizer, without a guard */
    bool contrastive;        /* the loss is CLIP's */
    float smoothing;
    enum on_nan on_nan;
    struct augmentation augmentation; /* of training images */
};

extern const struct option training_options[], task_options[]; /* a task's keys: both */

/* The training images per class of task k, from the keys shots and task_shots of data; 0: all. */
size_t task_shots(const struct options *data, size_t k);

/* Turns epochs, and those of the warm-up, if any, into iterations of a task with this many training images; the last batch of an epoch may be
 * smaller. */
void task_settings_count(struct task_settings *settings, size_t images);

/* The settings of an iteration, from the section `training` alone. */
struct task_settings training_settings_of(const struct options *options);

/* Whether the loss fits the head, the augmentation and the GPUs; section is for messages. */
status training_check(const char *section, const struct options *options, bool of_texts, size_t gpus,
                      struct error *error);

/* The settings of a task of the suite, from which strings are borrowed. */
struct task_settings task_settings_of(const struct suite *suite, const char *name);
