#include "harness/commands/adapter_choice.h"

#include <limits.h>
#include <string.h>

#include "adapters/adapter_file.h"

static status say_routers(const char *file, const char *own, const char *found, struct error *error)
{
    struct text list = {0};
    TRY(adapter_file_routers(file, &list, error));
    error_set(error, ERROR_ARGUMENT,
              "command line: --adapters %s: expected %s--router none or the number of a router, one of %s; found %s",
              file, own, list.data != NULL ? list.data : "none", found);
    text_free(&list);
    return ERROR_ARGUMENT;
}

status adapter_choice_read(struct adapter_choice *choice, const struct options *options, bool own, struct error *error)
{
    const char *word = options_text(options, "router");
    int64_t number = -1;
    *choice = (struct adapter_choice){.file = options_text(options, "adapters"), .router = ROUTER_NONE};
    bool none = word != NULL && strcmp(word, "none") == 0;
    if (choice->file == NULL && word != NULL && !none)
        return error_set(error, ERROR_ARGUMENT, "command line: --router %s: expected --adapters FILE beside it", word);
    if (choice->file == NULL || none)
        return OK;
    if (own && word != NULL && strcmp(word, "own") == 0) {
        choice->router = ROUTER_OWN;
        return OK;
    }
    if (word == NULL || !parse_integer(word, &number) || number < 0 || number > SHRT_MAX)
        return say_routers(choice->file, own ? "--router own, " : "", word != NULL ? word : "no --router", error);
    choice->router = (int)number;
    return OK;
}
