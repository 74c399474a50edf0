-- Schema version 8: how even experts are used.

-- The balance losses of the step, of all blocks and without their weight; empty: there are none.
ALTER TABLE steps ADD COLUMN balance_loss REAL;

-- The mean gate of these choices; empty: of an older program.
ALTER TABLE class_experts ADD COLUMN gate REAL;
