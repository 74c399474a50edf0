SELECT CASE WHEN count(*) > 0 AND count(*) = sum(run IN (SELECT run FROM settings WHERE key = 'head.name' AND value = 'linear'))
            THEN 'paper-table-of-classifiers'
            WHEN :setting IN ('class_incremental', 'domain_incremental')
                 OR count(*) > 0 AND sum(setting NOT IN ('class_incremental', 'domain_incremental')) = 0
            THEN 'paper-table-of-classes' END
FROM chosen
WHERE status = 'finished'
