/* The keys of a suite for the selector. */
#ifndef MTIL_HARNESS_SELECTORS_SELECTOR_OPTIONS_H
#define MTIL_HARNESS_SELECTORS_SELECTOR_OPTIONS_H

#include "core/option.h"

enum selector_kind { SELECTOR_ORACLE, SELECTOR_CLIP, SELECTOR_NONE };
enum selector_decision { DECIDE_PER_IMAGE, DECIDE_PER_BATCH };

struct selector_settings {
    enum selector_kind kind;
    enum selector_decision decision;
    size_t decision_batch, code, iterations, batch;
    double rate, l2, quantile, threshold; /* threshold 0: the quantile of each task's own held-out loss */
};

extern const struct option selector_options[];
struct selector_settings selector_settings_of(const struct options *options);

#endif
