-- Schema version 4: inputs, sessions and folder of a run.

-- From here on suite_hash covers the settings and the contents of all inputs, settings_hash the settings alone, without
-- paths and the seed. Empty: the run was created by an older program.
ALTER TABLE runs ADD COLUMN settings_hash TEXT /* suite_hash of the settings alone */;
ALTER TABLE runs ADD COLUMN folder TEXT /* of its adapters, weights and resume file; empty: unknown */;

-- Inputs of a run; their digests are part of suite_hash, their paths are not.
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

-- One row per process that worked on a run.
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
    cpu TEXT NOT NULL,
    gpu TEXT,                                 -- empty: none was used
    driver TEXT
) STRICT;
CREATE INDEX sessions_of_run ON sessions (run);

-- Images that could not be decoded and were left out (on_unreadable: skip), training and test.
ALTER TABLE tasks ADD COLUMN unreadable_images INTEGER NOT NULL DEFAULT 0 CHECK (unreadable_images >= 0) /* there, but left out */;

-- Iterations that were skipped because their loss or gradients were not finite (on_nan: skip). No row: none.
CREATE TABLE skipped_steps (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    steps INTEGER NOT NULL CHECK (steps > 0),
    PRIMARY KEY (run, task),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT, WITHOUT ROWID;
