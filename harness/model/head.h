/* The head of a model turns features of images into scores of classes. A head is a table of functions, one file in this
 * folder and one line in HEADS below; training, evaluation and prediction see only this table. Hooks that are NULL do
 * nothing.
 *
 *     const struct head *head = model->head;
 *     TRY(head->load(model, mode, error));                                    // the weights of the towers
 *     TRY(head->open_task(model, task, error));                               // per task, on the host
 *     TRY(head->open(model, classes, mode, error));                           // its own weights, after the tasks
 *     TRY(head->begin_task(model, task, router, &task_arena, &classes, error));// training: per task, on the device
 *     TRY(head->encode(model, &classes, &batch, error));                      // every iteration: the classes,
 *     TRY(head->loss(model, &classes, &batch, error));                        // features to dfeatures,
 *     TRY(head->backward(model, &batch, error));                              // and the gradients of the classes
 *     TRY(head->classes(model, task, router, &arena, NULL, &rows, error));    // evaluation: [classes, width]
 *     TRY(head->scores(model, &features, &rows, &scores, error));             // [images, classes]
 *
 * In evaluation a class is a row of numbers, so that the rows of several tasks can be joined and kept:
 * evaluate/label_space.h.
 */
#pragma once

#include "core/option.h"
#include "harness/scenario/data.h"
#include "models/clip.h"

struct model;
struct settings;

/* The classes of a task in training. Device memory. */
struct head_classes {
    struct texts texts;     /* that every iteration encodes; count 0: none */
    const int32_t *routers; /* [texts.count] the router of each text */
};

/* The texts of an iteration, in the arena for texts. */
struct head_texts {
    struct encoding encoding;
    struct tower_pass pass;
    struct tensor features, dfeatures;
};

/* A batch in training. */
struct head_batch {
    const struct tensor *features; /* of the images, [B, embed], not normalised */
    const struct image_labels *labels;
    float smoothing, weight; /* of the loss */
    bool contrastive;        /* training.loss; of a head of texts, where no image is mixed */
    struct tensor dfeatures; /* out, in the step's arena */
    struct head_texts texts; /* the head's own */
};

struct head {
    const char *name, *source;    /* source: where it is published */
    const char *what;             /* its parts, for messages: "class prompts" */
    const char *formula;          /* its definition in one line, with its keys by name */
    const struct option *options; /* its keys under `head` */
    /* Classes are texts: the vocabulary is an input of a run, and a model predicts before it is trained (the zero-shot
     * row). */
    bool of_texts;
    status (*check)(const struct settings *settings, struct error *error); /* refuses suites that the head cannot run */

    /* Loads or draws the weights of the model's towers into its memory. */
    status (*load)(struct model *model, enum parameters_mode mode, struct error *error);
    /* Gives newly started adapters the values that the file of weights has for them. */
    status (*load_experts)(struct model *model, struct error *error);
    /* classes: of all tasks together */
    status (*open)(struct model *model, size_t classes, enum parameters_mode mode, struct error *error);
    void (*close)(struct model *model);                          /* opened or not */
    struct parameters *(*parameters)(const struct model *model); /* the head's own trained weights (GROUP_HEAD) */
    /* Writes the weights of the model, including the head's. */
    status (*save)(const struct model *model, const struct data *data, const char *path, struct error *error);

    /* Prepares the classes of a task, and forgets them (zeros are allowed). */
    status (*open_task)(const struct model *model, struct task *task, struct error *error);
    void (*close_task)(struct task *task);
    /* Prepares the classes of data->joint: those of all tasks, one task after the other. */
    status (*join_tasks)(const struct model *model, struct data *data, struct error *error);

    /* classes, from the arena, are valid until it is emptied. */
    status (*begin_task)(struct model *model, const struct task *task, int32_t router, struct arena *arena,
                         struct head_classes *classes, struct error *error);
    /* Encodes the classes as an iteration needs them, and adds the gradients that the loss has left for them to the trained
     * parameters. Both run beside the image tower (struct branches). NULL: classes are not encoded. */
    status (*encode)(struct model *model, const struct head_classes *classes, struct head_batch *batch,
                     struct error *error);
    status (*backward)(struct model *model, const struct head_batch *batch, struct error *error);
    /* Adds weight · loss to the model's loss and its gradients to the head's trained parameters, and writes the gradients
     * of the features to batch->dfeatures. */
    status (*loss)(struct model *model, const struct head_classes *classes, struct head_batch *batch,
                   struct error *error);

    size_t (*width)(const struct model *model);
    /* rows [classes, width] in the arena, with a router (−1: adapters off). chosen, unless NULL, receives the experts of every
     * text: host [encoded, text blocks, K]. */
    status (*classes)(struct model *model, const struct task *task, int router, struct arena *arena, int32_t *chosen,
                      struct tensor *rows, struct error *error);
    /* The number of texts that rows are computed from. Rows change only with the experts of these texts; 0: with every
     * training. */
    size_t (*encoded)(const struct task *task);
    /* scores [n, classes] in the step's arena, of features [n, embed] and rows [classes, width]; the highest score
     * decides. */
    status (*scores)(struct model *model, const struct tensor *features, const struct tensor *rows,
                     struct tensor *scores, struct error *error);

    /* The number of texts that an iteration encodes and the tokens of the longest, for estimates. */
    void (*texts)(const struct model *model, const struct task *task, size_t *count, size_t *positions);
};

/* The heads, in the order of lists. */
#define HEADS(X)                                                                                                       \
    X(text)                                                                                                            \
    X(linear)

#define DECLARE(name) extern const struct head head_##name;
HEADS(DECLARE)
#undef DECLARE

status head_find(const struct head **head, const char *name, struct error *error);
const struct head *head_at(size_t index); /* NULL past the last one */
