/* The heads: one file in this folder and one line here each, in the order of lists. */
#pragma once

#include "harness/heads/head.h"

#define HEADS(X)                                                                                                       \
    X(text)                                                                                                            \
    X(linear)

#define DECLARE(name) extern const struct head head_##name;
HEADS(DECLARE)
#undef DECLARE

status head_find(const struct head **head, const char *name, struct error *error);
const struct head *head_at(size_t index); /* NULL past the last one */
