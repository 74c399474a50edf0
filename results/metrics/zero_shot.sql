-- title: Zero-shot
-- place: 80
-- formula: zero-shot CLIP's accuracy
-- low: 0
-- high: 100
-- images: 1
max(accuracy) FILTER (WHERE after_task = -1)
