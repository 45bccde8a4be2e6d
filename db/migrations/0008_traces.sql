-- When each part of a job ran, and where: stages of the pipeline, and every attempt of every task.

-- W3C traceparent of the request that made the job; '': a job of before.
ALTER TABLE jobs ADD COLUMN traceparent TEXT NOT NULL DEFAULT '';

CREATE TABLE job_stages (
  number         INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of beginning
  job            TEXT    NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  name           TEXT    NOT NULL,                   -- "search", "build round 2"
  started_micros INTEGER NOT NULL,
  ended_micros   INTEGER NOT NULL                    -- 0: it runs, or the server was ended in it
) STRICT;
CREATE INDEX job_stages_job ON job_stages (job, number);

-- A claim of a task, and how it ended. Written by the triggers below, so that no way in which a task changes hands can be forgotten, and
-- what is here is what happened.
CREATE TABLE task_attempts (
  number         INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of claims
  task           INTEGER NOT NULL REFERENCES tasks (number) ON DELETE CASCADE,
  fence          INTEGER NOT NULL,
  kind           TEXT    NOT NULL,                   -- of the task
  worker         TEXT    NOT NULL,
  instance       TEXT    NOT NULL,
  queued_micros  INTEGER NOT NULL,                   -- since when the task had waited
  claimed_micros INTEGER NOT NULL,
  ended_micros   INTEGER NOT NULL DEFAULT 0,         -- 0: it runs
  -- DONE, WORKER_FAILED (the worker said so), LEASE_EXPIRED, WORKER_GONE (a new process came, or its connection broke), CANCELLED, REQUEUED; '': it runs
  ended_how      TEXT    NOT NULL DEFAULT '',
  ended_order    INTEGER UNIQUE,                     -- order of ends; NULL: it runs
  UNIQUE (task, fence)
) STRICT;

CREATE TRIGGER task_claimed AFTER UPDATE OF fence ON tasks WHEN NEW.fence > OLD.fence
BEGIN
  INSERT INTO task_attempts (task, fence, kind, worker, instance, queued_micros, claimed_micros)
  VALUES (NEW.number, NEW.fence, NEW.kind, NEW.worker, NEW.instance,
          (SELECT coalesce(max(ended_micros), NEW.created_micros) FROM task_attempts WHERE task = NEW.number),
          NEW.updated_micros);
END;

CREATE TRIGGER task_let_go AFTER UPDATE OF state ON tasks WHEN OLD.state = 'RUNNING' AND NEW.state <> 'RUNNING'
BEGIN
  UPDATE task_attempts
  SET ended_micros = NEW.updated_micros,
      ended_order = (SELECT coalesce(max(ended_order), 0) + 1 FROM task_attempts),
      ended_how = CASE
        WHEN NEW.state = 'DONE' THEN 'DONE'
        WHEN NEW.state = 'CANCELLED' THEN 'CANCELLED'
        WHEN NEW.failures > OLD.failures THEN 'WORKER_FAILED'
        WHEN NEW.lost_workers > OLD.lost_workers AND OLD.lease_until_micros < NEW.updated_micros THEN 'LEASE_EXPIRED'
        WHEN NEW.lost_workers > OLD.lost_workers THEN 'WORKER_GONE'
        ELSE 'REQUEUED'
      END
  WHERE task = NEW.number AND fence = OLD.fence;
END;
