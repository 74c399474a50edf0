-- Schema version 6: classes and true labels, what became of merges, answers with other selectors.

-- The true classes of a task's test images, in their order: 16 bits each, least significant byte first, the label within the
-- task. There where something is kept of each image.
CREATE TABLE test_labels (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    labels BLOB NOT NULL,                -- 16 bits per test image, least significant byte first: its true class
    PRIMARY KEY (run, task),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT;

-- What became of a merge. A row is written at the next merge after the iterations that it looks at, or when the task ends.
CREATE TABLE merge_effects (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    iteration INTEGER NOT NULL,          -- of the merge, as in expert_events, with the next three
    encoder TEXT NOT NULL CHECK (encoder IN ('image', 'text')),
    block INTEGER NOT NULL,
    position INTEGER NOT NULL,
    known INTEGER NOT NULL,              -- after which iteration; one more than the task has: when it ended
    iterations INTEGER NOT NULL CHECK (iterations BETWEEN 0 AND 50), -- that followed in the task, of which:
    chosen INTEGER NOT NULL CHECK (chosen >= 0),       -- samples that chose the merged expert,
    choices INTEGER NOT NULL CHECK (choices >= chosen), -- and that chose any of the block: top_k for each
    loss_before REAL,                    -- mean over up to 50 iterations up to the merge; empty: none was a number
    loss_after REAL,                     -- mean over the iterations that followed
    distance REAL,                       -- of its outputs to its sources', 0 to 1; empty: all were zero
    PRIMARY KEY (run, task, iteration, encoder, block, position),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

-- What the saved adapters of a run answer with another selector (mtil eval --selector). Computed later than the run and again
-- whenever somebody asks, so these rows belong to a database rather than to the run.
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
