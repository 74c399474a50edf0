-- Schema version 1: observations. Rows are only appended; derived values are views (views.sql). Each later version is a
-- file that changes this schema: see results/README.md. Indices count from 0, iterations from 1.

-- One row per suite and seed. Only runs, timings and artifacts depend on the clock and the machine.
CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    suite TEXT NOT NULL,
    suite_hash TEXT NOT NULL,            -- of everything that determines the numbers but the seed
    suite_text TEXT NOT NULL,            -- as resolved
    setting TEXT NOT NULL,
    method TEXT NOT NULL,
    policy TEXT NOT NULL,
    selector TEXT NOT NULL,
    selection TEXT NOT NULL,             -- per_image, per_batch or oracle
    task_order TEXT NOT NULL,
    model TEXT NOT NULL,
    backend TEXT NOT NULL,
    "precision" TEXT NOT NULL,
    program_version TEXT NOT NULL,
    seed INTEGER NOT NULL,
    tasks INTEGER NOT NULL CHECK (tasks BETWEEN 1 AND 4096),
    trainable_parameters INTEGER,
    status TEXT NOT NULL CHECK (status IN ('running', 'stopped', 'finished', 'failed')),
    message TEXT,                        -- why it failed
    started TEXT NOT NULL,               -- UTC, 2026-01-31T12:00:00Z
    finished TEXT,
    host TEXT NOT NULL,                  -- of the process that writes it, or wrote it last
    process INTEGER NOT NULL,
    UNIQUE (suite_hash, seed)
) STRICT;

CREATE TABLE tasks (
    run INTEGER NOT NULL REFERENCES runs,
    task INTEGER NOT NULL CHECK (task >= 0),
    name TEXT NOT NULL,
    classes INTEGER NOT NULL,
    training_images INTEGER NOT NULL,
    test_images INTEGER NOT NULL,
    test_digest TEXT /* of the test items in order */,
    PRIMARY KEY (run, task)
) STRICT, WITHOUT ROWID;

-- The accuracy matrix as counts. The order of the key lets a view read a run's columns in turn without sorting.
CREATE TABLE evaluations (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    checkpoint INTEGER NOT NULL CHECK (checkpoint >= -1), -- last task trained; -1: zero-shot CLIP
    correct INTEGER NOT NULL CHECK (correct BETWEEN 0 AND images),
    images INTEGER NOT NULL CHECK (images > 0),
    PRIMARY KEY (run, task, checkpoint),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

-- In a table of its own, so that reading accuracies reads no images. The form of data: results/store/per_image.h.
CREATE TABLE per_image (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    checkpoint INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('bits', 'predictions')), -- right or wrong, or the predicted class
    data BLOB NOT NULL,                  -- of each test image in order, packed
    PRIMARY KEY (run, task, checkpoint),
    FOREIGN KEY (run, task, checkpoint) REFERENCES evaluations ON DELETE CASCADE
) STRICT;

CREATE TABLE expert_counts (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    encoder TEXT NOT NULL CHECK (encoder IN ('image', 'text')),
    block INTEGER NOT NULL CHECK (block >= 0),
    expert INTEGER NOT NULL CHECK (expert >= 0),
    count INTEGER NOT NULL CHECK (count >= 0),
    PRIMARY KEY (run, task, encoder, block, expert),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

CREATE TABLE expert_events (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    iteration INTEGER NOT NULL CHECK (iteration >= 0),
    encoder TEXT NOT NULL CHECK (encoder IN ('image', 'text')),
    block INTEGER NOT NULL CHECK (block >= 0),
    position INTEGER NOT NULL,           -- counts the events of the block in this iteration
    event TEXT NOT NULL CHECK (event IN ('merge', 'skip', 'freeze')),
    target INTEGER,                      -- the expert that was overwritten or frozen
    t1 INTEGER,                          -- the merged experts; the target is their mean
    t2 INTEGER,
    mixture TEXT,                        -- any other mixture, as JSON: [[3, 0.5], [0, 0.3], [7, 0.2]]
    reason TEXT,                         -- of a skip
    PRIMARY KEY (run, task, iteration, encoder, block, position),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

CREATE TABLE router_choices (
    run INTEGER NOT NULL,
    checkpoint INTEGER NOT NULL CHECK (checkpoint >= -1),
    task INTEGER NOT NULL,               -- the true one
    router INTEGER NOT NULL CHECK (router >= -1), -- the chosen one; -1: zero-shot CLIP
    count INTEGER NOT NULL CHECK (count > 0),
    PRIMARY KEY (run, checkpoint, task, router),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

-- The error of a task's autoencoder above which an image goes to zero-shot CLIP. Infinite: none does.
CREATE TABLE selector_thresholds (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    threshold REAL,
    PRIMARY KEY (run, task),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

CREATE TABLE steps (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    iteration INTEGER NOT NULL CHECK (iteration >= 1),
    loss REAL,                           -- empty: not a number
    learning_rate REAL NOT NULL,
    PRIMARY KEY (run, task, iteration),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

CREATE TABLE timings (
    timing INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs,
    task INTEGER NOT NULL CHECK (task >= -1), -- -1: before the first
    iteration INTEGER NOT NULL CHECK (iteration >= 0),
    phase TEXT NOT NULL,                 -- train, evaluate, features, selector
    seconds REAL NOT NULL,
    iterations INTEGER,
    images INTEGER,
    peak_bytes INTEGER
) STRICT;
CREATE INDEX timings_of_run ON timings (run, task, iteration);

CREATE TABLE artifacts (
    run INTEGER NOT NULL REFERENCES runs,
    task INTEGER NOT NULL CHECK (task >= -1), -- -1: of the whole run
    kind TEXT NOT NULL,                  -- adapters, weights, selector, resume
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    digest TEXT,                         -- SHA-256
    PRIMARY KEY (run, task, kind)
) STRICT, WITHOUT ROWID;

-- Properties of the database: the digest of its views.
CREATE TABLE properties (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
