-- Priorities and limits of jobs; tasks know whose they are, until when they may wait and how long one worker may hold them. The
-- tables of tasks are made anew, because the list of reasons for failing grows. Which task is given out next is decided in
-- memory (server/dispatch/ready_queue.h), so the queue needs no index in order of priority.

ALTER TABLE jobs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN queue_limit_micros INTEGER NOT NULL DEFAULT 0;  -- of each task; 0: none

CREATE TABLE new_tasks (
  number            INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of queueing
  id                TEXT    NOT NULL UNIQUE,            -- "tasks/<hex>"
  key               TEXT    NOT NULL,                   -- equal keys: equal work
  kind              TEXT    NOT NULL CHECK (kind IN ('BUILD', 'TIME')),
  state             TEXT    NOT NULL CHECK (state IN ('QUEUED', 'RUNNING', 'DONE', 'FAILED', 'CANCELLED')),
  target            TEXT    NOT NULL,
  arch              TEXT    NOT NULL,                   -- '': any
  device_uuid       TEXT    NOT NULL,                   -- '': any
  user              TEXT    NOT NULL,                   -- of the job that it was queued for
  priority          INTEGER NOT NULL,                   -- larger first, among those of the user
  fence             INTEGER NOT NULL,                   -- raised by every claim
  attempts          INTEGER NOT NULL,                   -- claims
  failures          INTEGER NOT NULL,                   -- claims that ended with the worker saying it failed
  lost_workers      INTEGER NOT NULL,                   -- claims that ended with the worker gone
  worker            TEXT    NOT NULL,                   -- last holder
  instance          TEXT    NOT NULL,
  avoid_worker      TEXT    NOT NULL,                   -- is not given it; '': none
  lease_until_micros INTEGER NOT NULL,
  hold_micros       INTEGER NOT NULL,                   -- longest time of one claim, however often it is renewed; 0: none
  hold_until_micros INTEGER NOT NULL,                   -- of the last claim; 0: none
  not_before_micros INTEGER NOT NULL,                   -- the worker that failed it last must wait until then
  queue_until_micros INTEGER NOT NULL,                  -- FAILED when nobody has taken it by then; 0: never
  failure           TEXT    NOT NULL CHECK (failure IN ('', 'WORKER_LOST', 'WORKER_FAILED', 'QUEUE_TIMEOUT')),
  failure_message   TEXT    NOT NULL,
  created_micros    INTEGER NOT NULL,
  updated_micros    INTEGER NOT NULL,
  payload           BLOB    NOT NULL,                   -- BuildTask or TimeTask
  result            BLOB    NOT NULL                    -- BuildResult or TimeResult; empty: none yet
) STRICT;
INSERT INTO new_tasks SELECT number, id, key, kind, state, target, arch, device_uuid, '', priority, fence, attempts, failures,
  lost_workers, worker, instance, '', lease_until_micros, 0, 0, not_before_micros, 0, failure, failure_message, created_micros,
  updated_micros, payload, result FROM tasks;

CREATE TABLE new_job_tasks (
  job  TEXT    NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  task INTEGER NOT NULL REFERENCES new_tasks (number) ON DELETE CASCADE,
  PRIMARY KEY (job, task)
) STRICT, WITHOUT ROWID;
INSERT INTO new_job_tasks SELECT job, task FROM job_tasks;

-- References to new_tasks follow it to its name.
DROP TABLE job_tasks;
DROP TABLE tasks;
ALTER TABLE new_tasks RENAME TO tasks;
ALTER TABLE new_job_tasks RENAME TO job_tasks;

-- The same work is in the queue or in progress at most once.
CREATE UNIQUE INDEX tasks_live_key ON tasks (key) WHERE state IN ('QUEUED', 'RUNNING');
CREATE INDEX tasks_key ON tasks (key);
CREATE INDEX tasks_live ON tasks (number) WHERE state IN ('QUEUED', 'RUNNING');
CREATE INDEX tasks_running ON tasks (worker) WHERE state = 'RUNNING';
CREATE INDEX job_tasks_task ON job_tasks (task);

-- The processes of each worker in the order in which they came, so that one that was replaced is known as such after a restart of
-- the server too.
CREATE TABLE worker_processes (
  number   INTEGER PRIMARY KEY AUTOINCREMENT,
  worker   TEXT    NOT NULL,
  instance TEXT    NOT NULL,
  UNIQUE (worker, instance)
) STRICT;
CREATE INDEX worker_processes_worker ON worker_processes (worker, number);
