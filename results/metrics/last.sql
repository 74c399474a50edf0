-- title: Last
-- place: 30
-- formula: a(T, j): after the last task
-- source: Zheng et al. (ZSCL, ICCV 2023)
-- best: highest
-- low: 0
-- high: 100
-- images: 1
-- tags: main|paper
max(accuracy) FILTER (WHERE after_task = tasks - 1)
