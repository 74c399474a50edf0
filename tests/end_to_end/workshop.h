/* A folder in which the built program is run as a user would: a tiny CLIP, its vocabulary, three small datasets and a suite.
 *
 *     struct workshop workshop;
 *     workshop_open(&workshop);               // clip.safetensors, vocabulary.txt, adapters.safetensors, data/, tiny.yaml
 *     struct outcome outcome = program_run(&workshop, &(struct launch){.arguments = "run tiny.yaml"});
 *     … outcome.exit_status, outcome.errors.data …
 *     outcome_free(&outcome);
 *     workshop_close(&workshop);
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

struct workshop {
    struct scratch scratch;
};

void workshop_open(struct workshop *workshop);
void workshop_close(struct workshop *workshop);

/* The file's path; a new buffer of the caller's to free. */
char *workshop_path(const struct workshop *workshop, const char *name);

/* A file of tensors, which the caller closes; and some of them, written to another with these metadata. */
struct safetensors *workshop_tensors(const struct workshop *workshop, const char *name);
void workshop_write(const struct workshop *workshop, const char *name, const struct safetensors *file, size_t first,
                    size_t count, const struct safetensors_metadata *metadata, size_t metadata_count);

/* Writes the tensors of one file of weights to another, after change had a look at each (false: leave it out). */
void workshop_rewrite(const struct workshop *workshop, const char *from, const char *to,
                      bool (*change)(struct safetensor *tensor));

/* The number of files below the folder whose writing did not end. */
int workshop_leftovers(const struct workshop *workshop);

struct launch {
    const char *arguments; /* separated by spaces */
    bool unprivileged;     /* as nobody, where the test runs as root */
};

struct outcome {
    int exit_status; /* −1: ended by signal */
    int signal;
    struct text out, errors;
};

struct process {
    pid_t id;
    FILE *out, *errors;
};

void program_start(struct process *process, const struct workshop *workshop, const struct launch *launch);
/* Waits until a file for the pattern is there (the caller frees its path) while the process runs. */
char *program_wait_for_file(const struct process *process, const struct workshop *workshop, const char *pattern);
/* Waits until the words are in what the process has written to standard error. */
void program_wait_for_words(const struct process *process, const char *words);
struct outcome program_wait(struct process *process);
struct outcome program_run(const struct workshop *workshop, const struct launch *launch);
void outcome_free(struct outcome *outcome);

/* Runs a script of the shell in the folder, where mtil is the program and "await PATTERN" waits for a file. */
struct outcome workshop_runs(const struct workshop *workshop, const char *script);
int workshop_shell(const struct workshop *workshop, const char *script);

/* It ends with this status; the caller frees the outcome. */
struct outcome program_ends(const struct workshop *workshop, const char *arguments, int exit_status);

/* How often the word stands in the text. */
size_t words_count(const char *text, const char *word);

/* It ended well; the error output is shown otherwise. */
void program_succeeds(const struct workshop *workshop, const char *arguments);

/* One error, which is the last line, has all of the words, "words | words", nothing is on standard output, and no file is only half
 * written; the exit status: 0 for any but 0. Frees the outcome. */
void outcome_refuses(const struct workshop *workshop, struct outcome outcome, const char *command, int exit_status,
                     const char *words);
