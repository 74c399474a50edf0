/* A folder of fixtures/model: the model, its adapters, the configuration, on a backend. */
#pragma once

#include <jansson.h>

#include "adapters/files/adapter_file.h"
#include "models/clip.h"
#include "tests/replay/given.h"
#include "tests/replay/recorded.h"
#include "tests/replay/report.h"

struct fixture {
    const char *folder;
    json_t *config, *tolerances;
    struct backend *backend;
    struct given given;
    struct arena model, step;
    struct clip *clip;
    struct adapters *adapters;
    struct step_state *state; /* device */
    float *loss;              /* device, one value */
    struct report *report;
};

void fixture_open(struct fixture *fixture, const char *folder, const struct backend_settings *backend,
                  struct report *report);
void fixture_close(struct fixture *fixture);

double fixture_tolerance(const struct fixture *fixture, const char *key);

/* To the device's step arena, floats or 32-bit integers. */
void fixture_upload(struct fixture *fixture, const void *values, size_t count, void **device);

/* One pass of both towers with router `task` (−1: adapters off). noise [tower]: device [blocks, B, E] or NULL.
 * Everything is in the step arena. gates [tower] on the device lie in the adapters' passes. */
struct replay_pass {
    struct encoding encoding[TOWERS];
    struct tower_pass passes[TOWERS];
    struct texts texts;
    struct tensor features[TOWERS];
};
void fixture_encode(struct fixture *fixture, struct replay_pass *pass, const float *images, size_t image_count,
                    const int32_t *tokens, size_t text_count, int task, bool training,
                    const float *const noise[TOWERS]);

/* gates [B, E] of a block, dense, to host memory that the caller frees. */
void fixture_gates(const struct fixture *fixture, enum tower tower, size_t block, size_t batch, float **gates);

/* Values and decisions: gates within tolerance, the set of chosen experts exact. */
void fixture_compare_gates(struct fixture *fixture, const char *quantity, const float *got, const float *expected,
                           size_t batch, const char *where);

void replay_forward(struct fixture *fixture);
void replay_gradients(struct fixture *fixture);
void replay_trajectory(struct fixture *fixture);
void replay_selector(struct fixture *fixture);
void replay_metrics(struct fixture *fixture);
