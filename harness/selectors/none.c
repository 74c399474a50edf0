/* No choice: there is one router for all tasks (adapter.routers: one). */
#include "harness/selectors/selector.h"

const struct selector_kind selector_none = {.name = "none",
                                            .source = "no choice: one router for all tasks",
                                            .formula = "router = the one of all tasks",
                                            .route = ROUTE_ONE};
