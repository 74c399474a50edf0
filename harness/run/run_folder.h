/* Where a run's files lie. */
#ifndef MTIL_HARNESS_RUN_RUN_FOLDER_H
#define MTIL_HARNESS_RUN_RUN_FOLDER_H

#include "harness/run/experiment.h"

/* The folder of a new run's files: FOLDER/SUITE-HASH/seedN; and in a folder the file that says where the run stands. The
 * caller frees; NULL when out of memory. */
char *run_folder(const struct experiment *experiment);
char *run_resume_file(const char *folder);

#endif
