-- Events of each kind, task and encoder of the drawn configurations that have any, as means over their runs.
kinds(kind, event, title) AS (
    VALUES (0, 'merge', 'merges'), (1, 'skip', 'skipped merges'), (2, 'freeze', 'experts frozen')
), happened AS MATERIALIZED (
    SELECT number, encoder, task, event, count(*) AS count
    FROM drawn
    JOIN expert_events USING (run)
    GROUP BY number, encoder, task, event
), encoders(encoder) AS (
    VALUES ('image'), ('text')
), counted AS MATERIALIZED (
    SELECT configurations.number AS number, encoders.encoder AS encoder, board.task AS task, kind, kinds.title AS title,
           1.0 * coalesce(count, 0) / used AS count
    FROM configurations
    JOIN encoders
    JOIN board
    JOIN kinds
    LEFT JOIN happened ON happened.number = configurations.number AND happened.encoder = encoders.encoder
                          AND happened.task = board.task AND happened.event = kinds.event
    WHERE configurations.number IN (SELECT number FROM happened)
)
