-- title: Average
-- place: 20
-- formula: mean of a(i, j) over all tasks i
-- source: Zheng et al. (ZSCL, ICCV 2023)
-- best: highest
-- low: 0
-- high: 100
-- images: 1
-- tags: main|paper
avg(accuracy) FILTER (WHERE after_task >= 0)
