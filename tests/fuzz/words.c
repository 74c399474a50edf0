#include "tests/fuzz/words.h"

#include <stdlib.h>
#include <string.h>

void words_split(struct words *words, const uint8_t *data, size_t size)
{
    *words = (struct words){.text = strndup((const char *)data, size)};
    if (words->text == NULL)
        abort();
    for (char *rest = words->text, *word; words->count < WORDS_MOST && (word = strsep(&rest, "\n")) != NULL;)
        words->items[words->count++] = word;
}

void words_free(struct words *words)
{
    free(words->text);
}
