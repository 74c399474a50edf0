-- Schema version 6: classes and true labels, what became of merges, answers with other selectors.

-- The true classes of a task's test images, in their order: 16 bits each, least significant byte first, the label within the
-- task. There where something is kept of each image.
CREATE TABLE test_labels (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    labels BLOB NOT NULL,
    PRIMARY KEY (run, task),
    FOREIGN KEY (run, task) REFERENCES tasks
) STRICT;
