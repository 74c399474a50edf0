-- Schema version 2: listed images that are missing (on_missing: skip), training and test.
ALTER TABLE tasks ADD COLUMN missing_images INTEGER NOT NULL DEFAULT 0 CHECK (missing_images >= 0) /* listed, but not there */;
