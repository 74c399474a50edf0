/* A model on a device, with the memory for computing with it. model_opening.h opens one. */
#ifndef MTIL_HARNESS_HEADS_MODEL_H
#define MTIL_HARNESS_HEADS_MODEL_H

#include "adapters/adapter.h"
#include "core/file_digest.h"
#include "harness/heads/head.h"
#include "models/clip.h"
#include "models/tokenizer.h"

enum { LOSS_TERMS = 2 };

struct model {
    struct backend *backend;
    struct arena memory, task_memory, step_memory; /* of the run, a task, a step; method.h says when each is reset */
    struct arena text_memory; /* of a training step's texts, whose tower runs beside the image tower; heads reset it */
    struct clip *clip;
    const struct head *head;
    void *head_state;          /* the head's own; NULL: none */
    struct adapters *adapters; /* NULL unless the method trains them or the caller opened some */
    struct tokenizer *tokenizer;
    float dropout;                                   /* of the image tower in training; the method sets it */
    struct file_stamp weights_read, vocabulary_read; /* of the files when they were read */
    unsigned groups;                                 /* trained groups: set of enum parameter_group */
    float logit_scale; /* exp of the parameter, read when a task of the head `text` begins; no method trains it */
    struct step_state *state; /* device */
    float *loss; /* device, LOSS_TERMS values: of the step, and of all balance losses without their weight */
    struct step_guard *guard;       /* device; guard.h */
    int32_t *found;                 /* device, one value: set by guard.h where a value is not finite */
    int32_t *counts_before[TOWERS]; /* device: the experts' selection counts before a step */
};

#endif
