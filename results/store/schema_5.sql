-- Schema version 5: every setting of a run as a row, and the last task trained under its own name.

-- Settings as resolved when the run was created, with defaults; a key under tasks only where its value differs from the
-- section that it comes from. A run that continues keeps these.
CREATE TABLE settings (
    run INTEGER NOT NULL REFERENCES runs,
    key TEXT NOT NULL,                        -- merge.every, tasks.mnist.learning_rate
    value ANY NOT NULL,                       -- numbers as numbers; true, false and lists as in suites: [1, 2]
    type TEXT NOT NULL CHECK (type IN ('integer', 'real', 'boolean', 'text', 'list')),
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;

-- Fills in existing runs from suite_text: since version 1 it has one "key: value" a line below "section:" and, further
-- in, "entry:". Quoted words differ from JSON's in \x1b alone. A key has the type of its option, so a folder called 1e5
-- stays text and a learning rate of 1 is a real number.
INSERT OR IGNORE INTO settings (run, key, value, type)
WITH RECURSIVE
lines(run, section, entry, line, rest) AS (
    SELECT run, '', '', '', suite_text || char(10) FROM runs
    UNION ALL
    SELECT run, iif(line GLOB '[^ ]*:', rtrim(line, ':') || '.', iif(line GLOB '[^ ]*', '', section)),
           iif(line GLOB '  [^ ]*:', trim(rtrim(line, ':')), iif(line GLOB '    *', entry, '')),
           substr(rest, 1, instr(rest, char(10)) - 1), substr(rest, instr(rest, char(10)) + 1)
    FROM lines
    WHERE rest <> ''),
pairs(run, section, entry, key, value) AS (
    SELECT run, iif(line GLOB ' *', section, ''), iif(line GLOB '    *', entry, ''),
           substr(ltrim(line), 1, instr(ltrim(line), ': ') - 1), substr(ltrim(line), instr(ltrim(line), ': ') + 2)
    FROM lines
    WHERE line GLOB '*[a-z0-9_]: ?*' AND line NOT GLOB '*:'),
quoted(run, section, entry, key, value, entry_json, value_json) AS (
    SELECT run, section, entry, key, value,
           iif(entry GLOB '"*"', replace(replace(replace(entry, '\\', char(1)), '\x', '\u00'), char(1), '\\'), '""'),
           iif(value GLOB '"*"', replace(replace(replace(value, '\\', char(1)), '\x', '\u00'), char(1), '\\'), '""')
    FROM pairs
    WHERE key NOT GLOB '*[^a-z0-9_]*'),
found(run, key, value, type) AS (
    SELECT run,
           section || iif(entry GLOB '"*"' AND json_valid(entry_json), json_extract(entry_json, '$'), entry) ||
               iif(entry = '', '', '.') || key,
           iif(value GLOB '"*"' AND json_valid(value_json), json_extract(value_json, '$'), value),
           CASE WHEN value GLOB '[[]*' THEN 'list'
                WHEN value GLOB '"*' OR key IN ('weights', 'vocabulary', 'root', 'path', 'template', 'folder', 'database',
                    'cache_folder', 'reader', 'name', 'policy', 'setting', 'order_name') THEN 'text'
                WHEN key IN ('scale', 'dropout', 'noise_epsilon', 'learning_rate', 'label_smoothing', 'weight_decay', 'l2',
                    'quantile', 'threshold', 'density', 'floor', 't') THEN 'real'
                WHEN value IN ('true', 'false') THEN 'boolean'
                WHEN value GLOB '[-0-9]*' AND json_valid(value) THEN json_type(value)
                ELSE 'text' END
    FROM quoted)
SELECT run, key, CASE type WHEN 'integer' THEN CAST(value AS INTEGER) WHEN 'real' THEN CAST(value AS REAL) ELSE value END,
       type
FROM found;

-- Drops sections that the method of a run does not use.
DELETE FROM settings
WHERE (key GLOB 'merge.*' OR key GLOB 'combine.*' OR key GLOB 'selector.*')
  AND run IN (SELECT run FROM runs WHERE method IN ('zero_shot', 'continual_ft', 'finetune'));
DELETE FROM settings
WHERE key GLOB 'adapter.*'
  AND run IN (SELECT run FROM runs
              WHERE method IN ('zero_shot', 'continual_ft')
                 OR method = 'finetune' AND run NOT IN (SELECT run FROM settings
                                                        WHERE key = 'method.train' AND value = 'adapters'));

-- The last task trained; -1: zero-shot CLIP. "checkpoint" suggested a file.
ALTER TABLE evaluations RENAME COLUMN checkpoint TO after_task;
ALTER TABLE per_image RENAME COLUMN checkpoint TO after_task;
ALTER TABLE router_choices RENAME COLUMN checkpoint TO after_task;
