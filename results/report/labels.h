/* Labels of configurations in a report: only what distinguishes them from the others beside them.
 *
 *     TRY(label_configurations(report, board, error));
 *     puts(board->configuration[0]->label);                  // "most_used", or "moe_adapters · none"
 */
#ifndef MTIL_RESULTS_REPORT_LABELS_H
#define MTIL_RESULTS_REPORT_LABELS_H

#include "results/report/data.h"

status label_configurations(struct report *report, struct board *board, struct error *error);

#endif
