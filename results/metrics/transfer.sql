-- title: Transfer
-- place: 10
-- formula: mean of a(i, j) over the tasks i before j: accuracy on tasks yet to come
-- source: Zheng et al. (ZSCL, ICCV 2023)
-- best: highest
-- low: 0
-- high: 100
-- skips: 1
-- tags: main|paper
avg(accuracy) FILTER (WHERE after_task < task AND after_task >= 0)
