/* A folder of recorded numbers, and what replays each kind of them. What is missing there, or has another form, ends the program
 * with its name.
 *
 *     struct safetensors *file = recorded_open(r, "task%zu.data.safetensors", task);
 *     const struct safetensor *images = recorded(file, "images");
 *     replay_compare(r, "features", device, recorded(file, "features"), recorded_tolerance(r, "features"));
 */
#pragma once

#include <jansson.h>

#include "core/option.h"
#include "models/block.h"
#include "models/files/safetensors.h"
#include "tests/replay/report.h"

/* A backend on which random numbers of routers are given, as a fixture recorded them, instead of drawn. */
struct given {
    struct backend_ops ops;
    const struct backend_ops *own;
    const float *noise[TOWERS]; /* device [blocks, B, E]; NULL: drawn as usual */
    const int32_t *owner;       /* device [B] experts of a partition; NULL: drawn as usual */
};

struct replay {
    const char *folder;
    struct backend_settings settings;
    size_t members;     /* that train together */
    const char *method; /* the only one whose trajectory is replayed; NULL: all */
    bool stops;         /* stop and go on after every iteration */
    json_t *config;
    struct safetensors *data; /* the file of the kind; NULL: it has several */
    struct report report;
    void **taken; /* replay_take */
    size_t taken_count;
    /* of kinds that compute without a run */
    struct backend *backend;
    struct arena arena;
    struct given given;
};

/* ---- Memory of the host, until the folder has been replayed ---- */

void *replay_take(struct replay *r, size_t count, size_t size); /* zeros */
double *replay_widened(struct replay *r, const float *values, size_t n);
const char *replay_text(struct replay *r, const char *format, ...) PRINTF_LIKE(2, 3);
void replay_give_back(struct replay *r);

/* ---- What a folder holds ---- */

json_t *recorded_json(const struct replay *r, const char *name); /* the caller drops the reference */
double recorded_number(const json_t *object, const char *key);
size_t recorded_size(const json_t *object, const char *key);
size_t recorded_at(const json_t *list, size_t index); /* a whole number */
double recorded_tolerance(const struct replay *r, const char *key);

struct safetensors *recorded_open(const struct replay *r, const char *name, ...) PRINTF_LIKE(2, 3);
/* Floats are finite. */
const struct safetensor *recorded(const struct safetensors *file, const char *name, ...) PRINTF_LIKE(2, 3);
const struct safetensor *recorded_if_there(const struct safetensors *file, const char *name, ...) PRINTF_LIKE(2, 3);
const float *recorded_floats(const struct safetensors *file, size_t n, const char *name, ...) PRINTF_LIKE(3, 4);
const int32_t *recorded_integers(const struct safetensors *file, const char *name, ...) PRINTF_LIKE(2, 3);
double recorded_value(const struct safetensor *tensor, size_t i); /* of floats or doubles */
double recorded_largest(const struct safetensor *tensor);         /* magnitude */

/* A number as the value of an option, where the table has it. */
void recorded_option(struct options *options, const struct option *table, const char *name, double value);

/* ---- Comparing: as many values as are expected ---- */

void replay_floats(struct replay *r, const char *quantity, const float *got, const struct safetensor *expected,
                   double tolerance);
void replay_doubles(struct replay *r, const char *quantity, const double *got, const struct safetensor *expected,
                    double tolerance);
/* got: on the device */
void replay_compare(struct replay *r, const char *quantity, const float *got, const struct safetensor *expected,
                    double tolerance);

/* ---- The device ---- */

void replay_device_open(struct replay *r);
void replay_device_close(struct replay *r);
/* To memory of the arena, from host values; NULL: zeros. */
void *replay_upload(struct replay *r, struct arena *arena, const void *values, size_t bytes);
void *replay_download(struct replay *r, const void *device, size_t bytes);

/* ---- Kinds ---- */

void replay_classes(struct replay *r);
void replay_condu(struct replay *r);
void replay_finetune(struct replay *r);
void replay_icarl(struct replay *r);
void replay_keeplora(struct replay *r);
void replay_merge_policies(struct replay *r);
void replay_mixtures(struct replay *r);
void replay_model(struct replay *r);
void replay_moram(struct replay *r);
void replay_rail(struct replay *r);
void replay_stats(struct replay *r); /* folder: a file */
