/* The numbers of the gate rank_one among delta_settings.gate_numbers. */
#pragma once

enum rank_one_number { RANK_ONE_TOP_K, RANK_ONE_TEMPERATURE, RANK_ONE_THRESHOLD };
