-- Schema version 3: tasks that are parts of one dataset, cut by the meaning of its class names.
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
