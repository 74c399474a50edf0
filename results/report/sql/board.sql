-- What the questions of a page read, of the board whose number is in the table `page_board` (results/report/data.h).
DROP TABLE IF EXISTS temp.configurations;
DROP TABLE IF EXISTS temp.members;
DROP TABLE IF EXISTS temp.drawn;
DROP TABLE IF EXISTS temp.board;
DROP TABLE IF EXISTS temp.differing;

CREATE TEMP TABLE configurations AS
SELECT number, run, hash, label, legend, colour, runs, finished, used, seeds
FROM page_configurations
WHERE board = (SELECT board FROM page_board)
ORDER BY number;

CREATE TEMP TABLE members AS
SELECT page_members.run AS run, number, turn, seed, status, page_members.finished AS finished, page_members.used AS used, transfer,
       average, last, forgetting, backward_transfer, forward_transfer, gain, zero_shot
FROM configurations
JOIN page_members USING (hash)
ORDER BY number, turn;

CREATE TEMP TABLE drawn AS
SELECT members.run AS run, number, turn, seed, label, legend, colour, seeds
FROM members
JOIN configurations USING (number)
WHERE members.used AND colour IS NOT NULL
ORDER BY number, turn;

CREATE TEMP TABLE board AS
SELECT row_number() OVER (ORDER BY task) - 1 AS task, name, row_number() OVER (ORDER BY task) || '  ' || name AS title,
       dataset IS NULL OR dataset = name AS wanted
FROM tasks
CROSS JOIN page_board
WHERE run = (SELECT run FROM configurations WHERE number = 1)
ORDER BY task;

CREATE TEMP TABLE differing AS
SELECT number, key, value, incidental FROM configurations JOIN page_settings USING (hash) WHERE number <= 200;

CREATE UNIQUE INDEX temp.configurations_number ON configurations (number);
CREATE UNIQUE INDEX temp.members_run ON members (run);
CREATE UNIQUE INDEX temp.drawn_run ON drawn (run);
CREATE UNIQUE INDEX temp.board_task ON board (task);
CREATE UNIQUE INDEX temp.differing_key ON differing (number, key);
