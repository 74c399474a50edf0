-- title: Backward transfer
-- place: 50
-- formula: a(T, j) less a(j, j); without the last task
-- source: Lopez-Paz and Ranzato (NeurIPS 2017)
-- best: highest
-- low: -100
-- high: 100
-- skips: 1
iif(task < tasks - 1, max(accuracy) FILTER (WHERE after_task = tasks - 1) - max(accuracy) FILTER (WHERE after_task = task), NULL)
