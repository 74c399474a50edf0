/* --adapters FILE --router WHICH, shared by several commands.
 *
 *     static const struct option options[] = {ADAPTERS_OPTION, {.name = "router", .type = OPTION_TEXT, .help = "…"}, {0}};
 *     struct adapter_choice choice;
 *     TRY(adapter_choice_read(&choice, call->options, ROUTER_WORDS_ONE, error));
 *     choice.saved …, choice.router …
 *     adapter_choice_free(&choice);
 */
#pragma once

#include "core/option.h"
#include "harness/evaluate/predictor.h"

#define ADAPTERS_OPTION                                                                                                \
    {                                                                                                                  \
        .name = "adapters", .type = OPTION_TEXT, .help = "safetensors file of adapters, with the public key names"     \
    }

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
 * file lacks the requested router, the error lists its routers. After a failure there is nothing to free. */
status adapter_choice_read(struct adapter_choice *choice, const struct options *options, enum router_words words,
                           struct error *error);
void adapter_choice_free(struct adapter_choice *choice);
