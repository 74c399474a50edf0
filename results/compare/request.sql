CREATE TEMP TABLE request (status TEXT, only_dataset TEXT, detect REAL, draw_seed INTEGER, baseline TEXT, datasets INTEGER,
                           margin REAL, unpaired INTEGER, main TEXT, factors INTEGER, feasible INTEGER);
CREATE TEMP TABLE IF NOT EXISTS labels (hash TEXT, label TEXT); -- of query/labels.sql, where rows are compared
CREATE TEMP TABLE only_group (name TEXT);
CREATE TEMP TABLE note (place INTEGER PRIMARY KEY, note TEXT);
CREATE TEMP TABLE metric (place INTEGER PRIMARY KEY, name TEXT, title TEXT, lower INTEGER, floor REAL, ceiling REAL);
