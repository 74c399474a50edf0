-- title: events name experts that are there, and their parts
WITH checked AS (
    SELECT expert_events.*, "adapter.experts" AS experts,
           CASE WHEN event = 'skip' AND reason IS NULL THEN 'a reason'
                WHEN event <> 'skip' AND target IS NULL THEN 'a target'
                WHEN min(coalesce(target, 0), coalesce(t1, 0), coalesce(t2, 0)) < 0
                     OR max(coalesce(target, 0), coalesce(t1, 0), coalesce(t2, 0)) >= "adapter.experts"
                THEN 'one of ' || "adapter.experts" || ' experts'
                WHEN mixture IS NOT NULL
                     AND (NOT json_valid(mixture)
                          OR EXISTS (SELECT 1 FROM json_each(iif(json_valid(mixture), mixture, '[]')) AS part
                                     WHERE json_extract(part.value, '$[0]') NOT BETWEEN 0 AND "adapter.experts" - 1))
                THEN 'weights of ' || "adapter.experts" || ' experts'
           END AS fault
    FROM expert_events JOIN facts USING (run)
)
SELECT 'events' AS what, run,
       'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration AS "where",
       fault AS expected,
       event || ' of ' || coalesce(t1, '-') || ' and ' || coalesce(t2, '-') || ' into ' || coalesce(target, '-')
             || coalesce(' by ' || mixture, '') AS found
FROM checked
WHERE fault IS NOT NULL
UNION ALL
SELECT 'events', run, 'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration,
       'positions 0 to ' || (count(*) - 1), min(position) || ' to ' || max(position)
FROM expert_events
GROUP BY run, task, iteration, encoder, block
HAVING min(position) <> 0 OR max(position) <> count(*) - 1
