-- title: trials of other selectors test as many images by routers that were trained
-- expect: no rows
SELECT 'trials' AS what, run, 'trial ' || trial || ', task ' || task || ', after task ' || after_task AS "where",
       test_images || ' images, ' || runs.tasks || ' tasks' AS expected, images || ' images' AS found
FROM trial_evaluations JOIN tasks USING (run, task) JOIN runs USING (run)
WHERE images <> test_images OR max(after_task, task) >= runs.tasks
UNION ALL
SELECT 'trials', run, 'trial ' || trial || ', task ' || task || ', after task ' || after_task, images || ' images',
       coalesce(sum(count), 'no') || ' choices'
FROM trial_evaluations LEFT JOIN trial_choices USING (run, trial, task, after_task)
GROUP BY run, trial, task, after_task
HAVING coalesce(sum(count), 0) <> images
UNION ALL
SELECT 'trials', run, 'trial ' || trial || ', task ' || task || ', after task ' || after_task,
       'one of ' || (after_task + 1) || ' trained routers, of images that were tested', 'router ' || router
FROM trial_choices LEFT JOIN trial_evaluations USING (run, trial, task, after_task)
WHERE router > after_task OR images IS NULL
UNION ALL
SELECT 'trials', run, 'trial ' || trial || coalesce(', after task ' || after_task, ''), runs.tasks || ' accuracies',
       count(images)
FROM selector_trials JOIN runs USING (run) LEFT JOIN trial_evaluations USING (run, trial)
GROUP BY run, trial, after_task
HAVING count(images) <> runs.tasks
UNION ALL
SELECT 'trials', run, 'trial ' || trial, 'selector ' || selector || ', ' || selection, settings
FROM selector_trials
WHERE instr(char(10) || settings || char(10), char(10) || 'kind: ' || selector || char(10)) = 0
      OR selection NOT IN (selector, 'per_image', 'per_batch')
      OR instr(settings, 'decision: per_' || iif(selection = 'per_batch', 'image', 'batch')) > 0
