-- The work of a task beside its row. It is written once and read when it is handed out, and often has many pages; the row is rewritten at
-- every claim and at the end.

CREATE TABLE task_work (
  task        INTEGER PRIMARY KEY REFERENCES tasks (number) ON DELETE CASCADE,
  traceparent TEXT    NOT NULL,  -- of the job that it was queued for (jobs.traceparent); '': a task of before
  payload     BLOB    NOT NULL   -- BuildTask or TimeTask
) STRICT;
INSERT INTO task_work SELECT number, '', payload FROM tasks;
ALTER TABLE tasks DROP COLUMN payload;
