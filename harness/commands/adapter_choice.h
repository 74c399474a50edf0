/* --adapters FILE --router T|none, as several commands understand them.
 *
 *     static const struct option options[] = {ADAPTERS_OPTION, {.name = "router", .type = OPTION_TEXT, .help = "…"}, {0}};
 *     struct adapter_choice choice;
 *     TRY(adapter_choice_read(&choice, call->options, false, error));
 *     choice.file …, choice.router …
 */
#ifndef MTIL_HARNESS_COMMANDS_ADAPTER_CHOICE_H
#define MTIL_HARNESS_COMMANDS_ADAPTER_CHOICE_H

#include "core/option.h"
#include "harness/encoder.h"

#define ADAPTERS_OPTION                                                                                                \
    {                                                                                                                  \
        .name = "adapters", .type = OPTION_TEXT, .help = "adapters' safetensors file, under the public key names"      \
    }

#define ROUTER_OWN (-2) /* task k takes router k */

struct adapter_choice {
    const char *file; /* borrowed from the options; NULL: none */
    int router;       /* a number, ROUTER_NONE, or ROUTER_OWN where own is allowed */
};

/* --adapters without --router is an error that lists the file's routers, and so is a word that is no router. */
status adapter_choice_read(struct adapter_choice *choice, const struct options *options, bool own, struct error *error);

#endif
