-- What the questions of a page read, of the board whose number is in the table `page` (results/report/data.h). Colours
-- follow in colours.sql.
CREATE TEMP TABLE configurations AS
SELECT number, page_configurations.run AS run, hash, label, NULL AS colour, runs, finished, used, seeds
FROM page_configurations
JOIN labels USING (hash)
WHERE board = (SELECT board FROM page)
ORDER BY number;

CREATE TEMP TABLE members AS
SELECT page_members.run AS run, number, turn, seed, status, page_members.finished AS finished, page_members.used AS used
-- each: , {name}
FROM configurations
JOIN page_members USING (hash)
ORDER BY number, turn;

CREATE TEMP TABLE board AS
SELECT row_number() OVER (ORDER BY task) - 1 AS task, name, row_number() OVER (ORDER BY task) || '  ' || name AS title,
       dataset IS NULL OR dataset = name AS wanted
FROM tasks
CROSS JOIN page
WHERE run = (SELECT run FROM configurations WHERE number = 1)
ORDER BY task;

CREATE TEMP TABLE differing (number, key, value, incidental, PRIMARY KEY (number, key)) WITHOUT ROWID;

CREATE UNIQUE INDEX temp.configurations_number ON configurations (number);
CREATE UNIQUE INDEX temp.members_run ON members (run);
CREATE UNIQUE INDEX temp.board_task ON board (task);
