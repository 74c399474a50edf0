/* The published orders of MTIL's tasks, by name.
 *
 *     data: {order: II}                                 # stands for the eleven tasks, StanfordCars first
 *     order_tasks("II")  …  "stanford_cars food mnist …"
 *     order_name(data, "order") …  "II", or "dtd, mnist" for a list that has no name
 */
#pragma once

#include "core/option.h"

#define ORDER_I "aircraft caltech101 cifar100 dtd eurosat flowers food mnist oxford_pet stanford_cars sun397"
#define ORDER_II "stanford_cars food mnist oxford_pet flowers sun397 aircraft caltech101 dtd eurosat cifar100"

const char *order_tasks(const char *name); /* NULL: unknown order */

/* The name of the order given by the list `key` of options, or else the list itself. Borrowed. */
const char *order_name(const struct options *options, const char *key);
