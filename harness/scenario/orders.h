/* The published orders of MTIL's tasks, by name; and the order of a dataset's classes in class-incremental learning
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

#define ORDER_I "aircraft caltech101 cifar100 dtd eurosat flowers food mnist oxford_pet stanford_cars sun397"
#define ORDER_II "stanford_cars food mnist oxford_pet flowers sun397 aircraft caltech101 dtd eurosat cifar100"

const char *order_tasks(const char *name); /* NULL: unknown order */

/* The name of the order given by the list `key` of options, or else the list itself. Borrowed. */
const char *order_name(const struct options *options, const char *key);

/* The orders of MoE-Adapters' experiments (CVPR 2024) as numbers separated by spaces: cifar100, of its fine labels, and
 * tinyimagenet, of the lines of its wnids.txt. NULL: unknown name. */
const char *class_order_numbers(const char *name);

/* Cuts the classes of a dataset into tasks as the keys class_order, first, parts and increment of data say. order
 * [classes]: the classes, task after task; task_of [classes]. The order "numpy-1993" is NumPy's permutation of that seed, as
 * PyCIL and what is built on it shuffle classes. Tasks of equal size differ by one class where the number of classes asks
 * for it, the larger ones first (100 in 3: 34, 33, 33); with increment, PyCIL's rule, only the last may be smaller.
 * ERROR_ARGUMENT if the order is not one of these classes, each once, or the cut does not fit them. */
status class_order_cut(const struct options *data, const char *dataset, size_t classes, uint32_t *order,
                       uint32_t *task_of, struct error *error);
