/* One folder of fixtures/rivals, and what replays each kind. */
#pragma once

#include <jansson.h>

#include "models/backend.h"
#include "models/files/safetensors.h"
#include "tests/replay/report.h"

struct rival_fixture {
    const char *folder;
    json_t *config;
    struct safetensors *data;
    const struct backend_settings *backend;
    struct report *report;
};

/* The tensor of that name, of floats that are all finite and of this rank, or an error that names it. */
status rival_tensor(const struct rival_fixture *fixture, int rank, const struct safetensor **tensor,
                    struct error *error, const char *name, ...) PRINTF_LIKE(5, 6);
/* A number of config.json, or an error that names it. */
status rival_number(const struct rival_fixture *fixture, const char *key, double *number, struct error *error);
status rival_size(const struct rival_fixture *fixture, const char *key, size_t *size, struct error *error);

status replay_condu(struct rival_fixture *fixture, struct error *error);
status replay_keeplora(struct rival_fixture *fixture, struct error *error);
status replay_moram(struct rival_fixture *fixture, struct error *error);
