/* --adapters FILE --router WHICH, shared by several commands.
 *
 *     static const struct option options[] = {ADAPTERS_OPTION, OPTION(TEXT, "router", NULL, "…"), {0}};
 *     struct adapter_choice choice;
 *     TRY(adapter_choice_read(&choice, call->options, ROUTER_WORDS_ONE, error));
 *     choice.saved …, choice.router …
 *     adapter_choice_free(&choice);
 */
#pragma once

#include "adapters/files/adapter_metadata.h"
#include "core/option.h"
#include "harness/evaluate/predictor.h"
#include "models/vit.h"

#define ADAPTERS_OPTION OPTION(TEXT, "adapters", NULL, "safetensors file of adapters, with the public key names")

/* Besides ROUTER_NONE (harness/selectors/saved_adapters.h) and numbers */
#define ROUTER_AUTO (-2)     /* the selector that was saved with the adapters chooses */
#define ROUTER_OWN (-3)      /* every task takes the router of the task with its name */
#define ROUTER_POSITION (-4) /* task k takes router k */

/* The words that --router accepts besides none, a task's name and a number. */
enum router_words { ROUTER_WORDS_ONE = 1, ROUTER_WORDS_AUTO, ROUTER_WORDS_ALL = 4 };

struct adapter_choice {
    const char *file;            /* borrowed from the options; NULL: none */
    struct saved_adapters saved; /* of the file */
    int router;                  /* a number or one of the above */
};

/* Without --router the saved selector chooses, if there is one and the command accepts auto. Otherwise, and if the
 * file lacks the requested router, the error lists its routers. The caller frees, after a failure, too. */
status adapter_choice_read(struct adapter_choice *choice, const struct options *options, enum router_words words,
                           struct error *error);
void adapter_choice_free(struct adapter_choice *choice);

/* --- A classifier in --weights --- */

/* Detects a classifier's file (an image tower, possibly with experts and a head) instead of a CLIP in --weights, and
 * reads its dataset and classes.
 *
 *     struct classifier_choice choice;
 *     TRY(classifier_choice_read(&choice, "weights.safetensors", &stated, error));
 *     if (choice.is_one) … choice.about.classes … choice.metadata.tasks[0].name …
 *     classifier_choice_free(&choice);
 */

struct classifier_choice {
    bool is_one;
    struct vit_file about;
    struct safetensors *file;         /* owns the metadata's strings */
    struct adapter_metadata metadata; /* one task; none where the file names none */
};

/* stated: heads and activation as far as the caller gives them; zeros: neither. The caller frees, after a failure, too. */
status classifier_choice_read(struct classifier_choice *choice, const char *weights, const struct clip_stated *stated,
                              struct error *error);
void classifier_choice_free(struct classifier_choice *choice); /* all zero is allowed */
