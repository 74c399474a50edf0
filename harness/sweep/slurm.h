/* A sweep on a cluster: a Slurm job array with a task per run, and a job that joins their databases when all have
 * ended.
 *
 *     struct slurm_options options = {.request = &request, .partition = "gpu", .cpus = 8};
 *     char job[SLURM_JOB];
 *     TRY(slurm_submit(sweep, &options, job, error));                      // writes FOLDER/batch.sh, FOLDER/collect.sh
 *
 * Both scripts stay in the sweep's folder and can be changed and submitted by hand. Every run writes its own database
 * (parts.h), because an SQLite file may be written from several processes, but not from several machines. The folder
 * must be on a file system that all of them share.
 */
#pragma once

#include "harness/sweep/sweep.h"

enum { SLURM_JOB = 64 };

/* partition, time, memory and arguments are passed to sbatch unchanged; NULL or 0: not given. */
struct slurm_options {
    const struct sweep_request *request; /* of the sweep, for the job that joins */
    const char *partition, *time, *memory;
    const char *arguments; /* more arguments, separated by spaces */
    size_t cpus;           /* per run */
    size_t jobs;           /* at a time, at most */
};

/* Submits missing and unfinished runs; job is the number of the array. ERROR_BUSY while an earlier submission of the
 * same sweep is queued; ERROR_IO with its message if sbatch fails. */
status slurm_submit(const struct sweep *sweep, const struct slurm_options *options, char job[SLURM_JOB],
                    struct error *error);
