-- title: experts are merged when merge.every says, and frozen behind a task's last step
WITH blocks AS ( -- those that have experts, with what happened in each
    SELECT expert_counts.run AS run, expert_counts.task AS task, expert_counts.encoder AS encoder,
           expert_counts.block AS block,
           count(DISTINCT iteration) FILTER (WHERE event <> 'freeze') AS merges,
           min(iteration) FILTER (WHERE event <> 'freeze') AS earliest,
           max(iteration) FILTER (WHERE event <> 'freeze') AS latest,
           total(iteration % "merge.every") FILTER (WHERE event <> 'freeze') AS off,
           count(DISTINCT target) FILTER (WHERE event = 'freeze') AS freezes,
           min(iteration) FILTER (WHERE event = 'freeze') AS frozen
    FROM expert_counts
    JOIN facts USING (run)
    LEFT JOIN expert_events USING (run, task, encoder, block)
    WHERE expert = 0
    GROUP BY expert_counts.run, expert_counts.task, encoder, block
), compared AS (
    SELECT blocks.*, last, facts.*,
           CASE WHEN coalesce("merge.policy", 'none') IN ('none', 'ewa') THEN 0
                WHEN "merge.schedule" = 'every' THEN last / "merge.every"
                WHEN "merge.schedule" = 'once' THEN last >= "merge.every"
                WHEN "merge.schedule" = 'end_of_task' THEN 1 END AS due
    FROM blocks
    JOIN facts USING (run)
    JOIN plan USING (run, task)
    WHERE last = planned AND NOT alone
)
SELECT 'events' AS what, run, 'task ' || task || ', ' || encoder || ' block ' || block AS "where",
       coalesce(due, 'some') || ' merges or skips, ' || coalesce("merge.schedule", '-') || ' '
       || coalesce("merge.every", '-') || ', up to step ' || last AS expected,
       merges || ' from ' || coalesce(earliest, '-') || ' to ' || coalesce(latest, '-') AS found
FROM compared
WHERE (merges <> due AND NOT ("merge.policy" = 'downstream' AND merges = 0)) OR latest > last
      OR ("merge.schedule" IN ('every', 'plateau') AND off > 0)
      OR ("merge.schedule" = 'end_of_task' AND earliest < last)
UNION ALL
SELECT 'events', run, 'task ' || task || ', ' || encoder || ' block ' || block,
       CASE "adapter.freeze" WHEN 'share' THEN 'some' WHEN 'none' THEN 0 ELSE "adapter.freeze_top_k" END
       || ' freezes after step ' || last,
       freezes || ' after step ' || coalesce(frozen, '-')
FROM compared
WHERE freezes <> CASE "adapter.freeze" WHEN 'share' THEN freezes WHEN 'none' THEN 0 ELSE "adapter.freeze_top_k" END
      OR frozen < last
UNION ALL
SELECT 'events', run, 'task ' || task || ', ' || encoder || ' block ' || block,
       event || iif(event = 'freeze', ' after step ', ' up to step ') || last, 'after step ' || iteration
FROM expert_events JOIN plan USING (run, task)
WHERE last = planned AND (iteration > last OR (event = 'freeze' AND iteration < last))
