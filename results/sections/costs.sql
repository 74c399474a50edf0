-- section: 150 Time Time and memory
-- draw: table 1
-- caption: Per run, means over seeds; memory: the greatest of them, of the process on a processor and of the device on a GPU.
-- caption: Runs side by side slow one another down.{cut}
-- column: "images per second","peak memory, MiB" 0
SELECT label AS configuration, phase, avg(seconds) AS "time, s", avg(1000 * seconds_per_iteration) AS "per iteration, ms",
       avg(images_per_second) AS "images per second", nullif(max(peak_bytes), 0) / 1048576.0 AS "peak memory, MiB",
       iif((SELECT count(*) FROM configurations) > 60, ' The configurations with the highest Last.', '') AS cut
FROM members
JOIN configurations USING (number)
JOIN throughput USING (run)
WHERE number <= 60 AND members.used
GROUP BY number, phase
ORDER BY number, phase
