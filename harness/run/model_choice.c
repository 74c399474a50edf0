#include "harness/run/model_choice.h"

#include <string.h>

#include "core/text.h"

enum { HEADS_MOST = 1024 };

static bool read_heads(const struct options *options, size_t item, size_t *heads)
{
    int64_t value;
    if (!parse_integer(options_list_item(options, "heads", item), &value) || value < 1 || value > HEADS_MOST)
        return false;
    *heads = (size_t)value;
    return true;
}

status model_choice_read(struct clip_stated *stated, const struct options *options, const char *heads,
                         const char *activation, struct error *error)
{
    size_t count = options_list_size(options, "heads");
    *stated = (struct clip_stated){.heads_by = heads, .activation_by = activation};
    stated->config.activation = clip_activation_parse(options_text(options, "activation"));
    if (count == 1 && strcmp(options_list_item(options, "heads", 0), "auto") == 0)
        return OK;
    if (count == 2 && read_heads(options, 0, &stated->config.image_heads) &&
        read_heads(options, 1, &stated->config.text_heads))
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "%s: expected auto, or the heads of the image and of the text tower from 1 to %d, as in 16,16; "
                     "found \"%s\"",
                     heads, HEADS_MOST, options_as_text(options, "heads"));
}
