/* A target's bytes as the words of a command line, a line each. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { WORDS_MOST = 32 };

struct words {
    char *text;                  /* of the words */
    char *items[WORDS_MOST + 1]; /* ends with NULL */
    size_t count;
};

/* Aborts when there is no memory. */
void words_split(struct words *words, const uint8_t *data, size_t size);
void words_free(struct words *words);
