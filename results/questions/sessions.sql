-- title: the processes that worked on each run: program, command line, libraries and machine
SELECT run, session, sessions.started AS started, sessions.host AS host, sessions.program_version AS program_version,
       program_commit, command_line, compiler, libraries, cpu, gpu, driver
FROM chosen
JOIN sessions USING (run)
ORDER BY run, session
