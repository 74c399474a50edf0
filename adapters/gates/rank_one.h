/* The numbers of the gate rank_one among delta_settings.gate_numbers. */
#ifndef MTIL_ADAPTERS_GATES_RANK_ONE_H
#define MTIL_ADAPTERS_GATES_RANK_ONE_H

enum rank_one_number { RANK_ONE_TOP_K, RANK_ONE_TEMPERATURE, RANK_ONE_THRESHOLD };

#endif
