-- Schema version 7: choices of experts by class.

-- How often images of a class chose an expert of the image tower when the task was tested last: once per image, or once
-- per token where tokens decide, and for each of the top_k. Images without a router chose none. Stored where results
-- per image are kept and the router chooses in evaluation.
CREATE TABLE class_experts (
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    after_task INTEGER NOT NULL,
    block INTEGER NOT NULL CHECK (block >= 0),
    class INTEGER NOT NULL CHECK (class >= 0), -- the label within the task
    expert INTEGER NOT NULL CHECK (expert >= 0),
    count INTEGER NOT NULL CHECK (count > 0),
    PRIMARY KEY (run, task, after_task, block, class, expert),
    FOREIGN KEY (run, task, after_task) REFERENCES evaluations ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
