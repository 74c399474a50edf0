-- Schema version 6: true labels, effects of merges, results with other selectors.

-- The true classes of a task's test images, in their order: 16 bits each, least significant byte first, the label
-- within the task. Stored where results per image are kept.
CREATE TABLE test_labels (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    labels BLOB NOT NULL,                -- 16 bits per test image, least significant byte first: its true class
    PRIMARY KEY (run, task),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT;

-- The effect of a merge. A row is written at the next merge after the iterations that it covers, or when the task ends.
CREATE TABLE merge_effects (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    iteration INTEGER NOT NULL,          -- of the merge, as in expert_events, with the next three
    encoder TEXT NOT NULL CHECK (encoder IN ('image', 'text')),
    block INTEGER NOT NULL,
    position INTEGER NOT NULL,
    known INTEGER NOT NULL,              -- after which iteration; one more than the task has: when it ended
    iterations INTEGER NOT NULL CHECK (iterations BETWEEN 0 AND 50), -- that followed in the task
    chosen INTEGER NOT NULL CHECK (chosen >= 0),       -- choices of the merged expert
    choices INTEGER NOT NULL CHECK (choices >= chosen), -- choices of any expert of the block, top_k per sample
    loss_before REAL,                    -- mean over up to 50 iterations up to the merge; empty: none was a number
    loss_after REAL,                     -- mean over the iterations that followed
    distance REAL,                       -- between its outputs and its sources', 0 to 1; empty: all were zero
    PRIMARY KEY (run, task, iteration, encoder, block, position),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

-- Results of the saved adapters of a run with another selector (mtil eval --selector). They are computed on request
-- after the run, so they belong to a database rather than to the run.
CREATE TABLE selector_trials (
    run INTEGER NOT NULL REFERENCES runs,
    trial INTEGER NOT NULL CHECK (trial >= 1),
    selector TEXT NOT NULL,
    selection TEXT NOT NULL,              -- as in runs
    settings TEXT NOT NULL,               -- one "key: value" a line, as in a suite
    PRIMARY KEY (run, trial),
    UNIQUE (run, settings)
) STRICT, WITHOUT ROWID;

CREATE TABLE trial_evaluations (
    run INTEGER NOT NULL,
    trial INTEGER NOT NULL,
    task INTEGER NOT NULL,
    after_task INTEGER NOT NULL CHECK (after_task >= 0),
    correct INTEGER NOT NULL CHECK (correct BETWEEN 0 AND images),
    images INTEGER NOT NULL CHECK (images > 0),
    PRIMARY KEY (run, trial, task, after_task),
    FOREIGN KEY (run, trial) REFERENCES selector_trials,
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

CREATE TABLE trial_choices (
    run INTEGER NOT NULL,
    trial INTEGER NOT NULL,
    after_task INTEGER NOT NULL CHECK (after_task >= 0),
    task INTEGER NOT NULL,                -- the true one
    router INTEGER NOT NULL CHECK (router >= -1), -- the chosen one; -1: zero-shot CLIP
    count INTEGER NOT NULL CHECK (count > 0),
    PRIMARY KEY (run, trial, after_task, task, router),
    FOREIGN KEY (run, trial) REFERENCES selector_trials,
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;
