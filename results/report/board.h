/* The tables that the questions of a page read, of one board: temporary ones of the connection.
 *
 *     TRY(board_offer(report, board, error));                  // before the questions of the board
 *
 *     configurations  a row per configuration, best Last first: number (from 1), run (its first one), hash, label,
 *                     legend, colour (null: not drawn), runs, finished, used (how many enter means), seeds ("2 seeds")
 *     shown           a row per run: run, number, turn (from 0 in its configuration), seed, status, finished, used (0, 1), and its metrics
 *     drawn           the runs of shown that enter figures: of a configuration with a colour, and used
 *     board           a row per task: task, name, title ("3  cifar100"), wanted (1; 0: --dataset asks for another)
 *     metric_names    place (from 0), metric, title, formula, source, best ("highest", "lowest")
 *     differing       settings of the first 200 configurations: number, key, value, incidental
 */
#ifndef MTIL_RESULTS_REPORT_BOARD_H
#define MTIL_RESULTS_REPORT_BOARD_H

#include "results/report/data.h"

status board_offer(struct report *report, const struct board *board, struct error *error);

#endif
