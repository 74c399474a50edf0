#include "harness/commands/output.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/characters.h"

void output_words(const struct command_call *call, const char *words)
{
    struct text visible = {0};
    text_add_visible(&visible, words);
    fputs(visible.data, call->out);
    text_free(&visible);
}

status output_table(const struct command_call *call, const struct table *table, struct error *error)
{
    enum table_format format;
    TRY(table_format_parse(options_text(call->options, "format"), &format, error));
    return output_table_as(call, table, format, error);
}

status output_table_as(const struct command_call *call, const struct table *table, enum table_format format,
                       struct error *error)
{
    const char *plain = getenv("NO_COLOR");
    bool colour = isatty(fileno(call->out)) && (plain == NULL || *plain == 0);
    struct text text = {0};
    status result = table_render(table, format, colour, &text, error);
    if (result == OK && text.size > 0)
        fwrite(text.data, 1, text.size, call->out);
    text_free(&text);
    return result;
}
