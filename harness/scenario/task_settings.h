/* The keys of a suite for the training of a task, and the order of tasks and classes.
 *
 * The published orders of MTIL's tasks, by name; and the order of a dataset's classes in class-incremental learning
 * (data.split_by: order).
 *
 *     data: {order: II}                                 # stands for the eleven tasks, StanfordCars first
 *     order_tasks("II")  …  "stanford_cars food mnist …"
 *     order_name(data, "order") …  "II", or "dtd, mnist" for a list that has no name
 *
 *     data: {order: [cifar100], split_by: order, class_order: cifar100, parts: 10}       # or a list of numbers
 *     data: {order: [cub], split_by: order, class_order: numpy-1993, first: 100, parts: 5}
 *     class_order_numbers("cifar100")  …  "87 0 52 …"
 *     TRY(class_order_cut(data, "cifar100", 100, order, task_of, error));
 *     task_of[c] …  order[i] …                                    // the task of class c; the i-th class of all tasks
 */
#pragma once

#include <stdint.h>

#include "core/option.h"
#include "datasets/augment/augment.h"
#include "harness/config/suite.h"
#include "models/parameters.h"

/* The treatment of a training step whose loss or gradients are not finite. */
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

/* Turns epochs, and those of the warm-up, if any, into iterations of a task with this many training images; the last batch of
 * an epoch may be smaller. */
void task_settings_count(struct task_settings *settings, size_t images);

/* The settings of an iteration, from the section `training` alone. */
struct task_settings training_settings_of(const struct options *options);

/* Whether the loss fits the head, the augmentation and the GPUs; section is for messages. */
status training_check(const char *section, const struct options *options, bool of_texts, size_t gpus,
                      struct error *error);

/* The settings of a task of the suite, from which strings are borrowed. */
struct task_settings task_settings_of(const struct suite *suite, const char *name);

#define ORDER_I "aircraft caltech101 cifar100 dtd eurosat flowers food mnist oxford_pet stanford_cars sun397"
#define ORDER_II "stanford_cars food mnist oxford_pet flowers sun397 aircraft caltech101 dtd eurosat cifar100"

const char *order_tasks(const char *name); /* NULL: unknown order */

/* The name of the order given by the list `key` of options, or else the list itself. Borrowed. */
const char *order_name(const struct options *options, const char *key);

/* The orders of MoE-Adapters' experiments (CVPR 2024) as numbers separated by spaces: cifar100, of its fine labels, and
 * tinyimagenet, of the lines of its wnids.txt. NULL: unknown name. */
const char *class_order_numbers(const char *name);

/* Tasks after the first one: the key parts, or as many as increment makes of the classes where parts is not given;
 * none where `first` has all classes. */
size_t class_order_parts(const struct options *data, size_t classes);
status class_order_check(const struct options *data, struct error *error); /* whether increment has numbers */
bool class_order_counts(const struct options *data); /* whether that depends on the number of classes */

/* Cuts the classes of a dataset into tasks as the keys class_order, first, parts and increment of data say. order
 * [classes]: the classes, task after task; task_of [classes]. The order "numpy-1993" is NumPy's permutation of that
 * seed, as PyCIL and the code built on it shuffle classes. Where the classes do not divide evenly, tasks differ by
 * one class, the larger ones first (100 in 3: 34, 33, 33); with an increment, PyCIL's rule, only the last may be
 * smaller; a list of increments has the size of each. ERROR_ARGUMENT if the order is not one of these classes, each once, or the cut does not fit them. */
status class_order_cut(const struct options *data, const char *dataset, size_t classes, uint32_t *order,
                       uint32_t *task_of, struct error *error);
