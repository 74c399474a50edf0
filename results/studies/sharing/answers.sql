-- section: 200 Answers Answers of the second plan on merging
-- title: answers to the two questions of sharing-plan.md
-- draw: interval zero 2
-- name: answers
-- caption: Mean differences of Last over seeds with 95% intervals (Student).
-- x: difference, points
-- column: panel, series, colour, y hidden
-- column: difference, sd, low, high, low90, high90 2
WITH measured AS (
    SELECT seed, "row".value AS "row", trim(orders.value, '[]') AS dataset, last
    FROM chosen
    JOIN metrics USING (run)
    JOIN settings AS "row" ON "row".run = chosen.run AND "row".key = 'run.row'
    LEFT JOIN settings AS orders ON orders.run = chosen.run AND orders.key = 'data.order'
    WHERE status = 'finished'
), cuts AS (
    SELECT seed, dataset,
           max(last) FILTER (WHERE "row" = 'apart') - max(last) FILTER (WHERE "row" = 'apart-MA') AS apart,
           max(last) FILTER (WHERE "row" = 'together') - max(last) FILTER (WHERE "row" = 'together-MA') AS together,
           max(last) FILTER (WHERE "row" = 'mixed') - max(last) FILTER (WHERE "row" = 'mixed-MA') AS mixed
    FROM measured
    WHERE "row" IN ('apart', 'apart-MA', 'together', 'together-MA', 'mixed', 'mixed-MA')
    GROUP BY seed, dataset
), cells AS (
    SELECT seed, max(last) FILTER (WHERE "row" = 'most_used') AS most_least,
           max(last) FILTER (WHERE "row" = 'most_used+random') AS most_random,
           max(last) FILTER (WHERE "row" = 'random+least_used') AS random_least,
           max(last) FILTER (WHERE "row" = 'random') AS random_random
    FROM measured
    WHERE "row" IN ('most_used', 'most_used+random', 'random+least_used', 'random')
    GROUP BY seed
), differences AS (
    SELECT 10 AS number, 'Merging in apart less in together, both datasets' AS question, seed, avg(apart - together) AS difference
    FROM cuts GROUP BY seed HAVING count(apart - together) = 2
    UNION ALL SELECT 11, 'the same, cifar100', seed, apart - together FROM cuts WHERE dataset = 'cifar100'
    UNION ALL SELECT 12, 'the same, caltech101', seed, apart - together FROM cuts WHERE dataset = 'caltech101'
    UNION ALL SELECT 13, 'Merging in apart', seed, avg(apart) FROM cuts GROUP BY seed HAVING count(apart) = 2
    UNION ALL SELECT 14, 'Merging in together', seed, avg(together) FROM cuts GROUP BY seed HAVING count(together) = 2
    UNION ALL SELECT 15, 'Merging in mixed (described)', seed, avg(mixed) FROM cuts GROUP BY seed HAVING count(mixed) = 2
    UNION ALL SELECT 20, 'Effect of the source less that of the target', seed, most_random - random_least FROM cells
    UNION ALL SELECT 21, 'Source: most used less random', seed, (most_least + most_random - random_least - random_random) / 2 FROM cells
    UNION ALL SELECT 22, 'Target: least used less random', seed, (most_least + random_least - most_random - random_random) / 2 FROM cells
    UNION ALL SELECT 23, 'Source with the least used target less with a random one', seed,
                     most_least - random_least - most_random + random_random FROM cells
), tests AS MATERIALIZED (
    SELECT number, question, count(difference) AS seeds, mean(difference, seed) AS difference, sd(difference, seed) AS sd,
           half_width(difference, seed) AS half, permutation_p(difference) AS p,
           equivalence_p(difference, iif(number = 10, 1, 0.5)) AS p_equal
    FROM differences
    WHERE difference IS NOT NULL
    GROUP BY number
)
SELECT number || '. ' || question AS question, seeds, difference, sd, difference - half AS low, difference + half AS high,
       difference - t_quantile(0.9, seeds - 1) * sd / sqrt(seeds) AS low90,
       difference + t_quantile(0.9, seeds - 1) * sd / sqrt(seeds) AS high90, iif(number = 15, NULL, p) AS p,
       CASE WHEN number BETWEEN 11 AND 14 THEN holm(p, (SELECT json_group_array(p) FROM tests WHERE number BETWEEN 11 AND 14))
            WHEN number BETWEEN 21 AND 23 THEN holm(p, (SELECT json_group_array(p) FROM tests WHERE number BETWEEN 21 AND 23))
       END AS p_holm,
       iif(number % 10 = 0, p_equal, NULL) AS p_equal, '' AS panel, number || '. ' || question AS series,
       0 AS colour, difference AS y
FROM tests
ORDER BY number
