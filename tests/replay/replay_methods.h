/* One folder of fixtures/methods, and what replays each kind. */
#pragma once

#include "models/backend.h"
#include "tests/replay/recorded.h"
#include "tests/replay/report.h"

struct method_fixture {
    const char *folder;
    const struct backend_settings *backend;
    size_t members;              /* that train together */
    const char *method;          /* the only one whose trajectory is replayed; NULL: all */
    bool stops;                  /* stop and go on after every iteration */
    json_t *config, *tolerances; /* tolerances: borrowed from config */
    struct report *report;
};

void replay_classes(struct method_fixture *fixture);
void replay_finetune(struct method_fixture *fixture);
void replay_icarl(struct method_fixture *fixture);
void replay_merge_policies(struct method_fixture *fixture);
void replay_rail(struct method_fixture *fixture);
