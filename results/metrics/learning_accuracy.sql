-- title: Learning accuracy
-- place: 35
-- formula: a(j, j): right after the task's own training
-- source: Riemer et al. (MER, ICLR 2019)
-- best: highest
-- low: 0
max(accuracy) FILTER (WHERE after_task = task)
