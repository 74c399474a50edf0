-- title: Gain
-- place: 70
-- formula: a(T, j) less zero-shot CLIP's accuracy
-- best: highest
-- low: -100
-- high: 100
-- images: 1
-- tags: board
max(accuracy) FILTER (WHERE after_task = tasks - 1) - max(accuracy) FILTER (WHERE after_task = -1)
