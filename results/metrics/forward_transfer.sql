-- title: Forward transfer
-- place: 60
-- formula: a(j - 1, j) less zero-shot CLIP's accuracy; without the first task
-- source: Lopez-Paz and Ranzato (NeurIPS 2017)
-- best: highest
-- low: -100
-- high: 100
-- skips: 1
iif(task > 0, max(accuracy) FILTER (WHERE after_task = task - 1) - max(accuracy) FILTER (WHERE after_task = -1), NULL)
