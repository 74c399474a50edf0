/* A report's folder: written completely or not at all, and replacing only another report.
 *
 *     struct report_folder folder;
 *     TRY(report_folder_begin(&folder, "report", error));       // refuses what is no report
 *     … write into folder.fresh …
 *     TRY(report_folder_commit(&folder, error));                // or report_folder_abandon(&folder)
 */
#ifndef MTIL_RESULTS_REPORT_FOLDER_H
#define MTIL_RESULTS_REPORT_FOLDER_H

#include "core/temporary.h"

#define REPORT_FIGURES "figures" /* within it, for papers */

/* In the first bytes of every page, so that a report is recognised. */
#define REPORT_MARK "<meta name=\"generator\" content=\"mtil report\">"

struct report_folder {
    char *path, *fresh;         /* owned */
    struct temporary temporary; /* contains fresh */
};

status report_folder_begin(struct report_folder *folder, const char *path, struct error *error);

/* Renames `fresh` to `path` and removes an earlier report. On failure the folder is abandoned. */
status report_folder_commit(struct report_folder *folder, struct error *error);
void report_folder_abandon(struct report_folder *folder); /* harmless after commit */

#endif
