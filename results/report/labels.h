/* What a configuration is called in a report: no more than what sets it apart from the others beside it.
 *
 *     TRY(label_configurations(report, board, error));
 *     puts(board->configuration[0]->label);                  // "most_used", or "moe_adapters · none"
 */
#ifndef MTIL_RESULTS_REPORT_LABELS_H
#define MTIL_RESULTS_REPORT_LABELS_H

#include "results/report/data.h"

status label_configurations(struct report *report, struct board *board, struct error *error);

#endif
