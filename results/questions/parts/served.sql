-- The first run of the best drawn configuration with experts by class: experts of different runs have nothing to do with one
-- another. Its choices in the last test, and its experts.
served AS MATERIALIZED (
    SELECT run, label || ', seed ' || seed AS of FROM drawn
    WHERE turn = 0 AND run IN (SELECT run FROM class_experts)
    ORDER BY number
    LIMIT 1
), usage AS MATERIALIZED (
    SELECT task, block, class, expert, count, sum(count) OVER of_class AS images, 100.0 * count / sum(count) OVER of_class AS share,
           gate * count / sum(count) OVER of_class AS gate
    FROM served
    JOIN class_experts USING (run)
    WINDOW of_class AS (PARTITION BY task, block, class)
), experts(expert) AS (
    SELECT 0
    UNION ALL
    SELECT expert + 1 FROM experts WHERE expert < (SELECT max(expert) FROM expert_counts WHERE run IN (SELECT run FROM served))
)
