-- Jobs that clients submit, what happened to them, and the queue of tasks that workers run for them.
-- Times are microseconds since 1970-01-01 UTC. Blobs are serialised messages of proto/fusion/v1 unless said otherwise.

CREATE TABLE jobs (
  number         INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of submission
  id             TEXT    NOT NULL UNIQUE,            -- "jobs/<hex>"
  request_id     TEXT    UNIQUE,                     -- given by the client; NULL: none
  state          TEXT    NOT NULL CHECK (state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  target         TEXT    NOT NULL,
  graph_name     TEXT    NOT NULL,
  graph_hash     TEXT    NOT NULL,
  created_micros INTEGER NOT NULL,
  updated_micros INTEGER NOT NULL,
  graph_summary  BLOB    NOT NULL,                   -- GraphSummary
  request        BLOB    NOT NULL,                   -- SubmitRequest
  error          BLOB    NOT NULL,                   -- google.rpc.Status; empty: none
  result         BLOB    NOT NULL                    -- JobResult; empty: none yet
) STRICT;
CREATE INDEX jobs_unfinished ON jobs (number) WHERE state IN ('QUEUED', 'RUNNING');

CREATE TABLE job_events (
  job         TEXT    NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  sequence    INTEGER NOT NULL CHECK (sequence >= 1),  -- 1, 2, 3 ... without gaps in each job
  time_micros INTEGER NOT NULL,
  event       BLOB    NOT NULL,                        -- JobEvent
  PRIMARY KEY (job, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
  number            INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of queueing
  id                TEXT    NOT NULL UNIQUE,            -- "tasks/<hex>"
  key               TEXT    NOT NULL,                   -- equal keys: equal work
  kind              TEXT    NOT NULL CHECK (kind IN ('BUILD', 'TIME')),
  state             TEXT    NOT NULL CHECK (state IN ('QUEUED', 'RUNNING', 'DONE', 'FAILED', 'CANCELLED')),
  target            TEXT    NOT NULL,
  arch              TEXT    NOT NULL,                   -- '': any
  device_uuid       TEXT    NOT NULL,                   -- '': any
  priority          INTEGER NOT NULL,                   -- larger first
  fence             INTEGER NOT NULL,                   -- raised by every claim
  attempts          INTEGER NOT NULL,                   -- claims
  failures          INTEGER NOT NULL,                   -- claims that ended with the worker saying it failed
  lost_workers      INTEGER NOT NULL,                   -- claims that ended with the worker gone
  worker            TEXT    NOT NULL,                   -- last holder
  instance          TEXT    NOT NULL,
  lease_until_micros INTEGER NOT NULL,
  not_before_micros INTEGER NOT NULL,                   -- the worker that failed it last must wait until then
  failure           TEXT    NOT NULL CHECK (failure IN ('', 'WORKER_LOST', 'WORKER_FAILED')),
  failure_message   TEXT    NOT NULL,
  created_micros    INTEGER NOT NULL,
  updated_micros    INTEGER NOT NULL,
  payload           BLOB    NOT NULL,                   -- BuildTask or TimeTask
  result            BLOB    NOT NULL                    -- BuildResult or TimeResult; empty: none yet
) STRICT;
-- The same work is in the queue or in progress at most once.
CREATE UNIQUE INDEX tasks_live_key ON tasks (key) WHERE state IN ('QUEUED', 'RUNNING');
CREATE INDEX tasks_key ON tasks (key);
CREATE INDEX tasks_queue ON tasks (kind, target, priority DESC, number) WHERE state = 'QUEUED';
CREATE INDEX tasks_running ON tasks (worker) WHERE state = 'RUNNING';

-- Which jobs want a task: equal work of several jobs is done once.
CREATE TABLE job_tasks (
  job  TEXT    NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  task INTEGER NOT NULL REFERENCES tasks (number) ON DELETE CASCADE,
  PRIMARY KEY (job, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_tasks_task ON job_tasks (task);

-- Worker processes that were told to take no new tasks. A new process of the same worker starts undrained.
CREATE TABLE drained_workers (
  worker   TEXT NOT NULL PRIMARY KEY,
  instance TEXT NOT NULL
) STRICT, WITHOUT ROWID;
