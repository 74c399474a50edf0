/* The data name the task: what a perfect selector would give. */
#include "harness/selectors/selector.h"

const struct selector_kind selector_oracle = {.name = "oracle",
                                              .source = "the task is given",
                                              .formula = "router = that of the image's own task",
                                              .route = ROUTE_GIVEN};
