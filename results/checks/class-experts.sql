-- title: every image that has a router chooses top_k experts in every block, or each of its tokens does
WITH sums AS (
    SELECT run, task, after_task, block, sum(count) AS choices, max(class) AS class, max(expert) AS expert,
           max(gate) AS highest, min(gate) AS lowest
    FROM class_experts
    GROUP BY run, task, after_task, block
), routed AS (
    SELECT run, task, after_task, total(count) FILTER (WHERE router >= 0) AS images
    FROM router_choices
    GROUP BY run, task, after_task
), expected AS (
    SELECT sums.*, classes, "adapter.experts" AS experts, "adapter.routing" IS 'per_token' AS tokens,
           CAST(coalesce(routed.images, evaluations.images) * "adapter.top_k" AS INTEGER) AS of_samples,
           max(choices) OVER (PARTITION BY run, task, after_task) AS most
    FROM sums
    JOIN tasks USING (run, task)
    JOIN evaluations USING (run, task, after_task)
    JOIN facts USING (run)
    LEFT JOIN routed USING (run, task, after_task)
)
SELECT 'class experts' AS what, run, 'task ' || task || ', after task ' || after_task || ', block ' || block AS "where",
       iif(tokens, 'a multiple of ' || of_samples || ' choices, as many in every block', of_samples || ' choices')
           || ' of ' || classes || ' classes, ' || experts || ' experts, with gates up to 1' AS expected,
       choices || ' choices up to class ' || class || ', expert ' || expert || ', gate ' || coalesce(highest, '-') AS found
FROM expected
WHERE class >= classes OR expert >= experts OR lowest < 0 OR highest > 1.000001
      OR iif(tokens, choices <> most OR of_samples = 0 OR choices % of_samples <> 0, choices <> of_samples)
