-- title: a model is tested after a task when it has been trained on it
SELECT 'evaluations' AS what, run, 'after task ' || task AS "where", 'none: ' || planned || ' steps' AS expected,
       'an accuracy after ' || coalesce(last, 0) AS found
FROM plan
WHERE last IS NOT planned
      AND EXISTS (SELECT 1 FROM evaluations WHERE evaluations.run = plan.run AND after_task = plan.task)
