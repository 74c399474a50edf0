-- title: Forgetting
-- place: 40
-- formula: greatest a(i, j) from i = j on, less a(T, j); without the last task
-- source: Chaudhry et al. (ECCV 2018)
-- best: lowest
-- low: 0
-- high: 100
-- skips: 1
-- tags: board|paper
iif(task < tasks - 1, max(accuracy) FILTER (WHERE after_task >= task) - max(accuracy) FILTER (WHERE after_task = tasks - 1), NULL)
