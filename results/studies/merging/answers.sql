-- section: 200 Answers Answers of the merging study
-- title: answers to the five questions of merging-plan.md
-- draw: interval zero 2
-- name: answers
-- caption: Mean differences over {seeds} seeds with 95% intervals (Student).
-- x: difference, points
-- column: panel, series, colour, y hidden
-- column: difference, sd, low, high, low90, high90, r 2
WITH measured AS (
    SELECT seed, value AS "row", last, (
               SELECT avg(transfer)
               FROM (SELECT avg(100.0 * correct / images) AS transfer
                     FROM trials
                     WHERE trials.run = chosen.run AND after_task < task
                     GROUP BY task)) AS experts
    FROM chosen
    JOIN metrics USING (run)
    JOIN settings USING (run)
    WHERE status = 'finished' AND key = 'run.row'
), seeds AS (
    SELECT seed, max(last) FILTER (WHERE "row" = 'none') AS none, max(last) FILTER (WHERE "row" = 'most_used') AS merged,
           max(last) FILTER (WHERE "row" = 'random') AS random, max(last) FILTER (WHERE "row" = 'none+free') AS none_free,
           max(last) FILTER (WHERE "row" = 'most_used+free') AS merged_free,
           max(experts) FILTER (WHERE "row" = 'none') AS none_experts,
           max(experts) FILTER (WHERE "row" = 'most_used') AS merged_experts
    FROM measured
    GROUP BY seed
), differences AS (
    SELECT 1 AS number, 'Last, freezing: most_used − none' AS question, seed, none AS baseline, merged AS other FROM seeds
    UNION ALL
    SELECT 2, 'Last: the same, less (5)', seed, merged_free - none_free,
           merged - none FROM seeds
    UNION ALL
    SELECT 3, 'Last, freezing: most_used − random', seed, random, merged FROM seeds
    UNION ALL
    SELECT 4, 'Transfer of experts, freezing: most_used − none', seed, none_experts, merged_experts FROM seeds
    UNION ALL
    SELECT 5, 'Last, nothing frozen: most_used − none', seed, none_free, merged_free FROM seeds
), tests AS MATERIALIZED (
    SELECT number, question, count(other - baseline) AS seeds, mean(other - baseline, seed) AS difference,
           sd(other - baseline, seed) AS sd, half_width(other - baseline, seed) AS half,
           iif(number = 2, paired_t_p(other - baseline, seed), permutation_p(other - baseline)) AS p,
           equivalence_p(other - baseline, 0.5) AS p_equal, correlation(baseline, other) AS r
    FROM differences
    GROUP BY number
)
SELECT number || '. ' || question AS question, seeds, difference, sd, difference - half AS low, difference + half AS high,
       difference - t_quantile(0.9, seeds - 1) * sd / sqrt(seeds) AS low90,
       difference + t_quantile(0.9, seeds - 1) * sd / sqrt(seeds) AS high90, p,
       iif(number = 1, p, holm(p, (SELECT json_group_array(p) FROM tests WHERE number > 1))) AS p_holm,
       iif(number = 1, p_equal, NULL) AS p_equal, r, '' AS panel, number || '. ' || question AS series, 0 AS colour, difference AS y
FROM tests
ORDER BY number
