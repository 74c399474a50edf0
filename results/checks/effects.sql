-- title: every merge has its effect, whose shares are within their range
SELECT 'effects' AS what, run,
       'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration AS "where",
       'a merge' AS expected, coalesce(event, 'nothing') AS found
FROM merge_effects
LEFT JOIN expert_events USING (run, task, iteration, encoder, block, position)
WHERE event IS NOT 'merge'
UNION ALL
SELECT 'effects', run, 'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration,
       'an effect', 'none'
FROM facts
JOIN plan USING (run)
CROSS JOIN expert_events USING (run, task)
LEFT JOIN merge_effects USING (run, task, iteration, encoder, block, position)
WHERE last = planned AND "merge.analysis" = 'true' AND event = 'merge' AND known IS NULL
UNION ALL
SELECT 'effects', run, 'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration,
       min(50, known - iteration) || ' iterations, up to ' || "adapter.top_k" || ' choices of a sample, a distance up to 1',
       merge_effects.iterations || ' iterations, ' || choices || ' choices, ' || coalesce(distance, '-')
FROM merge_effects
JOIN facts USING (run)
LEFT JOIN plan USING (run, task)
WHERE distance NOT BETWEEN 0 AND 1.000001 OR chosen > choices OR known < iteration OR iterations > known - iteration
      OR known > planned + 1
      OR (choices > iterations * iif(encoder = 'image', batch, classes) * "adapter.top_k"
          AND "adapter.routing" = 'per_sample' AND "training.loss" = 'cross_entropy' AND "run.gpus" = 1 AND rate IS NOT NULL)
