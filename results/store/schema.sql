-- Schema 1: observations; results/README.md says what a row of each table is. Rows are only appended; derived values are
-- views (views.sql). Indices count from 0, iterations from 1. Nothing was released with it yet; a later version is a file of
-- its own that changes this one.

CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    suite TEXT NOT NULL,
    suite_hash TEXT NOT NULL,            -- of the settings and the contents of all inputs, without paths and the seed
    settings_hash TEXT NOT NULL,         -- suite_hash of the settings alone
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
    folder TEXT,                         -- of its adapters, weights and resume file; empty: unknown
    UNIQUE (suite_hash, seed)
) STRICT;

CREATE TABLE settings (
    run INTEGER NOT NULL REFERENCES runs,
    key TEXT NOT NULL,                        -- merge.every, tasks.mnist.learning_rate
    value ANY NOT NULL,                       -- numbers as numbers; true, false and lists as in suites: [1, 2]
    type TEXT NOT NULL CHECK (type IN ('integer', 'real', 'boolean', 'text', 'list')),
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE inputs (
    run INTEGER NOT NULL REFERENCES runs,
    task INTEGER NOT NULL CHECK (task >= -1), -- -1: of the whole run
    kind TEXT NOT NULL,                       -- weights, configuration, vocabulary, prompts, train, test
    path TEXT NOT NULL,                       -- where it was found
    files INTEGER NOT NULL CHECK (files >= 0),
    bytes INTEGER NOT NULL CHECK (bytes >= 0),
    digest TEXT NOT NULL,                     -- SHA-256 of its contents
    PRIMARY KEY (run, task, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    session INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs,
    started TEXT NOT NULL,                    -- UTC
    host TEXT NOT NULL,
    program_version TEXT NOT NULL,
    program_commit TEXT,                      -- empty: not built from a checkout
    command_line TEXT NOT NULL,
    compiler TEXT NOT NULL,
    libraries TEXT NOT NULL,                  -- "oneDNN 2.6.3, SQLite 3.40.1, …"
    cpu TEXT NOT NULL,                        -- "AMD EPYC, 8 threads": those that computed
    gpu TEXT,                                 -- empty: none was used
    driver TEXT
) STRICT;
CREATE INDEX sessions_of_run ON sessions (run);

CREATE TABLE tasks (
    run INTEGER NOT NULL REFERENCES runs,
    task INTEGER NOT NULL CHECK (task >= 0),
    name TEXT NOT NULL,
    classes INTEGER NOT NULL,
    training_images INTEGER NOT NULL,
    test_images INTEGER NOT NULL,
    missing_images INTEGER NOT NULL DEFAULT 0 CHECK (missing_images >= 0),       -- listed, but not there
    unreadable_images INTEGER NOT NULL DEFAULT 0 CHECK (unreadable_images >= 0), -- there, but left out
    test_digest TEXT,                    -- of the test items in order
    PRIMARY KEY (run, task)
) STRICT, WITHOUT ROWID;

-- Floating-point operations by the model's dimensions, a multiply and an add being two; empty: not counted.
CREATE TABLE operations (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    step REAL CHECK (step > 0),          -- of an iteration of its training
    image REAL CHECK (image > 0),        -- of a test image through the image tower
    PRIMARY KEY (run, task),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

CREATE TABLE task_classes (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    class INTEGER NOT NULL CHECK (class >= 0), -- the label within the task
    name TEXT NOT NULL,
    PRIMARY KEY (run, task, class),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

-- Mean cosine between the text features of two tasks' class names, other >= task; empty: a task of one class with itself.
CREATE TABLE task_similarities (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    other INTEGER NOT NULL CHECK (other >= task),
    cosine REAL,
    PRIMARY KEY (run, task, other),
    FOREIGN KEY (run, task) REFERENCES tasks,
    FOREIGN KEY (run, other) REFERENCES tasks
) STRICT, WITHOUT ROWID;

-- The accuracy matrix as counts. The order of the key lets a view read a run's columns in turn without sorting.
CREATE TABLE evaluations (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    after_task INTEGER NOT NULL CHECK (after_task >= -1), -- last task trained; -1: zero-shot CLIP
    correct INTEGER NOT NULL CHECK (correct BETWEEN 0 AND images),
    images INTEGER NOT NULL CHECK (images > 0),
    PRIMARY KEY (run, task, after_task),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

CREATE TABLE per_image (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    after_task INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('bits', 'predictions')), -- right or wrong, or the predicted class
    data BLOB NOT NULL,                  -- of each test image in order, packed (results/store/per_image.h)
    PRIMARY KEY (run, task, after_task),
    FOREIGN KEY (run, task, after_task) REFERENCES evaluations ON DELETE CASCADE
) STRICT;

CREATE TABLE test_labels (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    labels BLOB NOT NULL,                -- 16 bits per test image, least significant byte first: its true class
    PRIMARY KEY (run, task),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT;

CREATE TABLE class_experts (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    after_task INTEGER NOT NULL,
    block INTEGER NOT NULL CHECK (block >= 0),
    class INTEGER NOT NULL CHECK (class >= 0), -- the label within the task
    expert INTEGER NOT NULL CHECK (expert >= 0),
    count INTEGER NOT NULL CHECK (count > 0),
    gate REAL,                           -- the mean of these choices
    PRIMARY KEY (run, task, after_task, block, class, expert),
    FOREIGN KEY (run, task, after_task) REFERENCES evaluations ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE patch_experts (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    after_task INTEGER NOT NULL,
    image INTEGER NOT NULL CHECK (image >= 0), -- its place in the test list, as in per_image
    block INTEGER NOT NULL CHECK (block >= 0),
    file TEXT NOT NULL,                        -- the image's, without folders
    width INTEGER NOT NULL CHECK (width > 0),  -- patches in a row
    experts TEXT NOT NULL,                     -- JSON: an array of integers, row by row from the upper left corner
    PRIMARY KEY (run, task, after_task, image, block),
    FOREIGN KEY (run, task, after_task) REFERENCES evaluations ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

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

-- Where experts were: sums of their parameters with random signs, adapters/sketch.h.
CREATE TABLE expert_sketches (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    iteration INTEGER NOT NULL CHECK (iteration >= 0), -- 0: before the first task; one more than the task has: its end
    encoder TEXT NOT NULL CHECK (encoder IN ('image', 'text')),
    block INTEGER NOT NULL CHECK (block >= 0),
    expert INTEGER NOT NULL CHECK (expert >= 0),
    distance REAL NOT NULL,              -- of all parameters to the mean of the block's experts
    sketch BLOB NOT NULL,                -- floats of 32 bits, least significant byte first
    PRIMARY KEY (run, task, iteration, encoder, block, expert),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT;

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

-- A row is written at the next merge after the iterations that it covers, or when the task ends.
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

CREATE TABLE router_choices (
    run INTEGER NOT NULL,
    after_task INTEGER NOT NULL CHECK (after_task >= -1),
    task INTEGER NOT NULL,               -- the true one
    router INTEGER NOT NULL CHECK (router >= -1), -- the chosen one; -1: zero-shot CLIP
    count INTEGER NOT NULL CHECK (count > 0),
    PRIMARY KEY (run, after_task, task, router),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

CREATE TABLE selector_thresholds (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    threshold REAL,                      -- the error above which an image goes to zero-shot CLIP; infinite: none does
    PRIMARY KEY (run, task),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

-- Computed on request after the run (mtil eval --selector), so they belong to a database rather than to the run.
CREATE TABLE trials (
    run INTEGER NOT NULL,
    trial INTEGER NOT NULL CHECK (trial >= 1), -- counts the settings that were tried
    task INTEGER NOT NULL,
    after_task INTEGER NOT NULL CHECK (after_task >= 0),
    selector TEXT NOT NULL,
    selection TEXT NOT NULL,                   -- as in runs
    settings TEXT NOT NULL,                    -- of the selector: one "key: value" a line, as in a suite
    correct INTEGER NOT NULL CHECK (correct BETWEEN 0 AND images),
    images INTEGER NOT NULL CHECK (images > 0),
    routers TEXT NOT NULL,                     -- JSON: images by chosen router, -1: zero-shot CLIP: {"-1": 3, "0": 97}
    PRIMARY KEY (run, trial, task, after_task),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

CREATE TABLE steps (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    iteration INTEGER NOT NULL CHECK (iteration >= 1),
    loss REAL,                           -- empty: not a number
    learning_rate REAL,                  -- empty: unknown, of an external program
    balance_loss REAL,                   -- of all blocks, without its weight; empty: there are none
    accuracy REAL CHECK (accuracy BETWEEN 0 AND 1), -- of the batch, as augmented; empty: not measured
    PRIMARY KEY (run, task, iteration),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;

CREATE TABLE skipped_steps (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    steps INTEGER NOT NULL CHECK (steps > 0),
    PRIMARY KEY (run, task),
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

-- What a phase of timings used besides its time, where that is known.
CREATE TABLE resources (
    run INTEGER NOT NULL REFERENCES runs,
    task INTEGER NOT NULL CHECK (task >= -1),
    phase TEXT NOT NULL,
    encoded INTEGER CHECK (encoded > 0), -- test images that went through the image tower
    encoding REAL CHECK (encoding >= 0), -- seconds that they took, with reading them
    device_bytes INTEGER,                -- of a GPU's memory, most that the run had taken; empty: it used none
    PRIMARY KEY (run, task, phase)
) STRICT, WITHOUT ROWID;

CREATE TABLE artifacts (
    run INTEGER NOT NULL REFERENCES runs,
    task INTEGER NOT NULL CHECK (task >= -1), -- -1: of the whole run
    kind TEXT NOT NULL,                  -- adapters, weights, selector, resume
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    digest TEXT,                         -- SHA-256
    PRIMARY KEY (run, task, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE properties (
    name TEXT PRIMARY KEY,               -- views: the digest of views.sql
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
