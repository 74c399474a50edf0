/* The folder of a run. */
#ifndef MTIL_HARNESS_RUN_RUN_FOLDER_H
#define MTIL_HARNESS_RUN_RUN_FOLDER_H

#include "harness/run/run.h"

/* The folder of a new run, FOLDER/SUITE-HASH/seedN; and the paths of the resume file and of the scores of blocks in a
 * folder. The caller frees. */
char *run_folder(const struct run *run);
char *run_resume_file(const char *folder);
char *run_scores_file(const char *folder);

#endif
