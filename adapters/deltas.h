/* Low-rank deltas of the matrices of a CLIP's blocks (models/block.h): their group of parameters, and what is in use. Every task has
 * rows of its own, stacked as segments of A [tasks, rank, in] and B [tasks, rank, out].
 *
 *     TRY(deltas_create(&deltas, clip, &arena, &settings, PARAMETERS_TRAINED, error));
 *     TRY(deltas_initialize(deltas, seed, error));                      // A random, B zero: the model computes as before
 *     TRY(deltas_begin_task(deltas, 3, 3, DELTA_A | DELTA_B, error));   // tasks 0 … 2 merged, the rows of task 3 apart, trained
 *     deltas_destroy(deltas);                                           // before the clip
 *
 *     TRY(deltas_save(deltas, &extra, "adapters.safetensors", error));
 *     if (delta_file_is(file))
 *         TRY(deltas_open(&deltas, clip, &arena, file, error));         // computes with the bits of the run that saved it
 */
#pragma once

#include "adapters/files/group_file.h"
#include "adapters/place.h"
#include "core/option.h"
#include "core/scope.h"
#include "models/block.h"
#include "models/clip.h"

/* The matrices that deltas may belong to: query, key, value and output of the attention, and both layers of the MLP. */
enum delta_matrix { DELTA_QUERY, DELTA_KEY, DELTA_VALUE, DELTA_OUTPUT, DELTA_FC, DELTA_PROJ, DELTA_MATRICES };
extern const char *const delta_matrix_names[DELTA_MATRICES];

enum delta_start { DELTA_UNIFORM, DELTA_NORMAL };
enum { DELTA_GATE_NUMBERS = 3 };
enum delta_part { DELTA_A = 1, DELTA_B = 2, DELTA_MAGNITUDE = 4 };

/* The operation between the halves of a delta (models/block.h). One file in gates/ and one name here each; "none" is
 * that of a delta of the weight: its hooks are NULL, and the halves follow one another. */
#define DELTA_GATES(X) X(none) X(magnitude) X(importance) X(rank_one) X(by_input)
#define DECLARE(name) extern const struct delta_gate gate_##name;
DELTA_GATES(DECLARE)
#undef DECLARE

status delta_gate_find(const struct delta_gate **gate, const char *name, struct error *error);

/* For gates: out = a ⊙ b, all without gaps between rows. */
status delta_multiply(struct backend *backend, struct matrix a, struct matrix b, struct matrix out,
                      struct error *error);

/* The numbers of the gate rank_one among delta_settings.gate_numbers. */
enum rank_one_number { RANK_ONE_TOP_K, RANK_ONE_TEMPERATURE, RANK_ONE_THRESHOLD };
enum by_input_number { BY_INPUT_ALONE }; /* likewise of by_input */

struct delta_settings {
    size_t rank, tasks; /* rank: of a task's rows; tasks: that have rows of their own */
    float scale;
    unsigned matrices; /* set: bit i for matrix i */
    enum delta_start start;
    unsigned trained; /* set of A and B, for methods without a choice of their own */
    /* NULL: none; a method sets it. Beside A and B, `magnitude` has a number per task, `importance` one per row. */
    const struct delta_gate *gate;
    float gate_numbers[DELTA_GATE_NUMBERS]; /* its own, set by the method */
    struct adapter_place place;             /* its blocks and towers */
};

extern const struct option delta_options[];
status delta_settings_of(struct delta_settings *settings, const struct options *options, size_t tasks,
                         struct error *error);

/* One matrix; also the state of its delta, for a gate. */
struct delta_entry {
    struct deltas *deltas;
    enum tower tower;
    size_t block, in, out; /* the delta of its weight is [out, in] */
    enum delta_matrix matrix;
    struct linear *linear;  /* whose weight has it from row delta->first on */
    size_t a, b, magnitude; /* numbers of its tensors in the group */
    struct delta *delta;
};

struct deltas {
    struct clip *clip;
    struct delta_settings settings;
    struct parameters *parameters; /* flags: A of each task, B of each task, magnitude of each task */
    size_t count, merged;          /* merged: tasks whose product is in the weights */
    size_t apart, task;            /* tasks apart … task are in use beside them, unless merged > task */
    struct delta_entry *list;      /* [count] */
    struct delta *each;            /* [count], to which the clip's layers point */
    /* Device; NULL: the gate needs none. magnitude and importance: [magnitudes in use, rows²], 1 on the diagonal of a magnitude's
     * rows; by_input: [tasks · rank, tasks · rank] and [rank, tasks · rank], see there. */
    float *masks;
    char model[17]; /* digest of the clip before anything was merged */
};

/* Nothing is in use; the clip computes as before. ERROR_ARGUMENT where the clip lacks a block that is named. */
status deltas_create(struct deltas **deltas, struct clip *clip, struct arena *arena,
                     const struct delta_settings *settings, enum parameters_mode mode, struct error *error);
void deltas_destroy(struct deltas *deltas); /* NULL is allowed; takes them out of the clip's layers */
SCOPED_POINTER(struct deltas, deltas_destroy)

/* A of all tasks by settings.start, drawn with RNG_INIT; B zero. uniform: within ± 1 / √in, as the code of LoRA and PEFT draw;
 * normal: of deviation 1 / rank. Magnitudes of rows (gate importance) are N(0, 1), of tasks zero. */
status deltas_initialize(struct deltas *deltas, uint64_t seed, struct error *error);

/* Merges the tasks before `apart` that are not merged yet, in their order, and uses the rows of tasks apart … task.
 * It trains the listed parts (a set of enum delta_part) of the rows of `task`, and with DELTA_MAGNITUDE the
 * magnitudes of all tasks in use. The merged weights follow from the values and the calls, so a resumed run computes
 * the same ones. */
status deltas_begin_task(struct deltas *deltas, size_t task, size_t apart, unsigned parts, struct error *error);

/* The same without merging: earlier tasks that are neither merged nor in use count for nothing. */
status deltas_use(struct deltas *deltas, size_t task, size_t apart, unsigned parts, struct error *error);

/* What the gates magnitude and importance have beside A and B. */
struct delta_magnitudes {
    size_t first, count; /* those in use, among those of the matrix */
    size_t rows;         /* that the masks are square in, [count, rows²]; each magnitude has rows / count of them */
};
struct delta_magnitudes delta_magnitudes(const struct deltas *deltas); /* count 0: none */

bool deltas_in_tower(const struct deltas *deltas, enum tower tower); /* NULL: false */

/* Weight of a matrix += factor · scale · Bᵀ A of a task, in f32. */
status deltas_add_product(struct deltas *deltas, const struct delta_entry *entry, size_t task, float factor,
                          struct error *error);

/* The rows of a task, A [rank, in] or B [rank, out], or its magnitudes, 1 or [rank], from or to the host; the weight
 * [out, in] with the merged deltas. */
status deltas_read(const struct deltas *deltas, const struct delta_entry *entry, enum delta_part part, size_t task,
                   float *values, struct error *error);
status deltas_write(struct deltas *deltas, const struct delta_entry *entry, enum delta_part part, size_t task,
                    const float *values, struct error *error);
status deltas_read_weight(const struct deltas *deltas, const struct delta_entry *entry, float *values,
                          struct error *error);

/* A safetensors file has "visual.transformer.resblocks.3.query.delta_a.0" [rank, in] and "….delta_b.0" [rank, out] of
 * task 0, and magnitudes where there are any ("….delta_magnitude.0" [1] or [rank]). The text tower's names have no "visual.". */

/* Writes the tasks up to the one in use. A value that is not finite is an error, and nothing is written. */
status deltas_save(const struct deltas *deltas, const struct group_extra *extra, const char *path, struct error *error);

bool delta_file_is(const struct safetensors *file);

/* Opens deltas for inference, with the same tasks merged and in use as in the run. */
status deltas_open(struct deltas **deltas, struct clip *clip, struct arena *arena, const struct safetensors *file,
                   struct error *error);
