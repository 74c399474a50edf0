/* The methods' tables; one per file of this folder. */
#ifndef MTIL_HARNESS_METHODS_METHODS_H
#define MTIL_HARNESS_METHODS_METHODS_H

#include "harness/train/method.h"

extern const struct method method_moe_adapters, method_zero_shot, method_finetune, method_continual_ft;

#endif
