/* The memory that a process may still take.
 *
 *     uint64_t bytes = memory_available("");
 */
#pragma once

#include <stdint.h>

/* Bytes that are free or hold no more than copies of files, within the limits of the process's control groups (containers and
 * batch systems set them; versions 1 and 2). 0: unknown, and at least 1 otherwise. root: the folder with proc and sys, "" for the machine's own. */
uint64_t memory_available(const char *root);
