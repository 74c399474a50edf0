/* A folder in which the built program is run as a user would: a tiny CLIP, its vocabulary, three small datasets and a suite. There
 * is one at a time.
 *
 *     workshop_open();                        // clip.safetensors, vocabulary.txt, adapters.safetensors, data/, tiny.yaml
 *     struct outcome outcome = program_run("run tiny.yaml");
 *     … outcome.exit_status, outcome.errors.data …
 *     outcome_free(&outcome);
 *     workshop_close();
 *
 * Everything here fails the running test when something goes wrong that is not under test.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/text.h"
#include "models/files/safetensors.h"
#include "tests/datasets/scratch.h"
#include "tests/test.h"

extern struct scratch workshop;

void workshop_open(void);
void workshop_close(void);

/* The same around the tests of a file: TEST_GROUP(workshop_set_up, workshop_tear_down). */
int workshop_set_up(void **state);
int workshop_tear_down(void **state);

/* A file of tensors, which the caller closes; and tensors, written to one with these metadata. */
struct safetensors *workshop_tensors(const char *name);
void workshop_write(const char *name, const struct safetensor *tensors, size_t count,
                    const struct safetensors_metadata *metadata, size_t metadata_count);

struct outcome {
    int exit_status; /* −1: ended by signal */
    int signal;
    struct text out, errors;
};

struct process {
    pid_t id;
    FILE *out, *errors;
};

/* Arguments are separated by spaces. */
void program_start(struct process *process, const char *arguments);
/* Waits until a file for the pattern is there while the process runs. */
void program_wait_for_file(const struct process *process, const char *pattern);
/* Waits until the words are in what the process has written to standard error. */
void program_wait_for_words(const struct process *process, const char *words);
struct outcome program_wait(struct process *process);
struct outcome program_run(const char *arguments);
struct outcome program_run_as_nobody(const char *arguments); /* where the test runs as root */
void outcome_free(struct outcome *outcome);

/* Runs a script of the shell in the folder, where mtil is the program and "await PATTERN" waits for a file. */
struct outcome workshop_runs(const char *script);
int workshop_shell(const char *script);

/* How often the word stands in the text. */
size_t words_count(const char *text, const char *word);

/* It ended well; the error output is shown otherwise. */
void program_succeeds(const char *arguments);

/* One error, which is the last line, has all of the words, "words | words", nothing is on standard output, and no file is only half
 * written; the exit status: 0 for any but 0. Frees the outcome. */
void outcome_refuses(struct outcome outcome, const char *command, int exit_status, const char *words);
