-- title: a frozen expert is never written again, for the frozen set only grows
SELECT 'frozen' AS what, merges.run AS run,
       'task ' || merges.task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration AS "where",
       'expert ' || target || ' as it was frozen after task ' || freezes.task AS expected, 'merged into' AS found
FROM (SELECT * FROM expert_events WHERE event = 'merge') AS merges
JOIN (SELECT run, encoder, block, target, min(task) AS task FROM expert_events WHERE event = 'freeze'
      GROUP BY run, encoder, block, target) AS freezes USING (run, encoder, block, target)
WHERE merges.task > freezes.task
