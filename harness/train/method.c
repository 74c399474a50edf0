#include "harness/train/method.h"

#include <string.h>

#include "core/text.h"
#include "harness/methods/methods.h"

/* All methods; a new one is a file in methods/ and a line here. */
static const struct method *const methods[] = {
    &method_moe_adapters,
    &method_zero_shot,
    &method_finetune,
    &method_continual_ft,
};

enum { METHODS = sizeof methods / sizeof *methods };

const struct method *method_at(size_t index)
{
    return index < METHODS ? methods[index] : NULL;
}

status method_find(const struct method **method, const char *name, struct error *error)
{
    const char *names[METHODS];
    for (size_t i = 0; i < METHODS; i++) {
        names[i] = methods[i]->name;
        if (strcmp(names[i], name) == 0) {
            *method = methods[i];
            return OK;
        }
    }
    return error_unknown_word(error, "suite", "method", name, names, METHODS);
}
