/* One folder of fixtures/rivals, and what replays each kind. */
#pragma once

#include <jansson.h>

#include "models/backend.h"
#include "tests/replay/recorded.h"
#include "tests/replay/report.h"

struct rival_fixture {
    const char *folder;
    json_t *config;
    struct safetensors *data;
    const struct backend_settings *backend;
    struct report *report;
};

/* The tensor of that name, of floats that are all finite and of this rank. */
const struct safetensor *rival_tensor(const struct rival_fixture *fixture, int rank, const char *name, ...)
    PRINTF_LIKE(3, 4);
double rival_number(const struct rival_fixture *fixture, const char *key);
size_t rival_size(const struct rival_fixture *fixture, const char *key);

void replay_condu(struct rival_fixture *fixture);
void replay_keeplora(struct rival_fixture *fixture);
void replay_moram(struct rival_fixture *fixture);
