-- title: where the time of each run went, and how fast it was
SELECT run, phase, seconds, iterations, images, seconds_per_iteration, images_per_second, peak_bytes
FROM chosen
JOIN throughput USING (run)
ORDER BY run, phase
