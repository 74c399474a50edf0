/* The arithmetic of DPW (dpw.c): how many heads a task needs. */
#pragma once

#include "harness/train/image_pass.h"

/* Of a task's images and unit texts [classes, width] of its classes: see the head of dpw.c. */
double dpw_fineness(const struct frozen_rows *rows, const float *texts);
