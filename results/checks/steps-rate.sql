-- title: learning rates follow the schedule: a linear warm-up, then a cosine
SELECT 'steps' AS what, steps.run AS run, 'task ' || steps.task || ', iteration ' || iteration AS "where",
       CASE WHEN iteration <= warmup THEN rate * iteration / warmup
            WHEN iteration > schedule_end THEN 0.0
            ELSE rate * 0.5 * (1 + cos(3.14159265358979323846 * (iteration - 1 - warmup) / (schedule_end - warmup))) END
       AS expected,
       learning_rate AS found
FROM plan
CROSS JOIN steps USING (run, task)
WHERE abs(expected - learning_rate) > 1e-9 * rate
UNION ALL
SELECT 'steps', run, 'task ' || task || ', iteration ' || iteration, 'a learning rate', learning_rate
FROM steps
WHERE learning_rate < 0 OR abs(learning_rate) > 1e300
