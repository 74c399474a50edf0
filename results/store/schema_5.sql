-- Schema version 5: every setting of a run as a row, and the last task trained under its own name.

-- As resolved when the run was created, defaults included; of a key under tasks that comes from another section, only where
-- it differs from that section's. A run that continues keeps these.
CREATE TABLE settings (
    run INTEGER NOT NULL REFERENCES runs,
    key TEXT NOT NULL,                        -- merge.every, tasks.mnist.learning_rate
    value ANY NOT NULL,                       -- a number is one; true, false and lists as suites write them: [1, 2]
    type TEXT NOT NULL CHECK (type IN ('integer', 'real', 'boolean', 'text', 'list')),
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;

-- Of the runs that are there, from suite_text: it has been one "key: value" a line since version 1, below "section:" and,
-- further in, "entry:". Quoted values differ from JSON's in \x1b alone.
INSERT OR IGNORE INTO settings (run, key, value, type)
WITH RECURSIVE
lines(run, section, entry, line, rest) AS (
    SELECT run, '', '', '', suite_text || char(10) FROM runs
    UNION ALL
    SELECT run, iif(line GLOB '[^ ]*:', rtrim(line, ':') || '.', iif(line GLOB '[^ ]*', '', section)),
           iif(line GLOB '  [^ ]*:', trim(rtrim(line, ':'), ' "') || '.', iif(line GLOB '    *', entry, '')),
           substr(rest, 1, instr(rest, char(10)) - 1), substr(rest, instr(rest, char(10)) + 1)
    FROM lines
    WHERE rest <> ''),
pairs(run, section, key, value) AS (
    SELECT run, iif(line GLOB ' *', section, '') || iif(line GLOB '    *', entry, ''),
           substr(ltrim(line), 1, instr(ltrim(line), ': ') - 1), substr(ltrim(line), instr(ltrim(line), ': ') + 2)
    FROM lines
    WHERE line GLOB '*[a-z0-9_]: ?*' AND line NOT GLOB '*:'),
found(run, key, value, json) AS (
    SELECT run, section || key, value,
           iif(value GLOB '"*', replace(replace(replace(value, '\\', char(1)), '\x', '\u00'), char(1), '\\'), value)
    FROM pairs
    WHERE key NOT GLOB '*[^a-z0-9_]*'),
typed(run, key, value, json, type) AS (
    SELECT run, key, value, json, CASE WHEN json_valid(json) THEN json_type(json) ELSE 'text' END
    FROM found)
SELECT run, key, iif(json_valid(json) AND type IN ('integer', 'real', 'text'), json_extract(json, '$'), value),
       CASE WHEN value GLOB '[[]*' THEN 'list' WHEN type IN ('true', 'false') THEN 'boolean'
            WHEN type IN ('integer', 'real') THEN type ELSE 'text' END
FROM typed;

-- The last task trained; -1: zero-shot CLIP. It was never the number of a file.
ALTER TABLE evaluations RENAME COLUMN checkpoint TO after_task;
ALTER TABLE per_image RENAME COLUMN checkpoint TO after_task;
ALTER TABLE router_choices RENAME COLUMN checkpoint TO after_task;
