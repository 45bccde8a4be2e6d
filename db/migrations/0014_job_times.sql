-- How long jobs that have a time limit have been worked on, and have waited, by the server's own measure: what the clock says may be
-- set between two processes of the server. Beside the jobs, whose rows are long and would be rewritten.

CREATE TABLE job_times (
  job         TEXT    PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
  used_micros INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO job_times SELECT id, max(0, updated_micros - created_micros) FROM jobs WHERE state IN ('QUEUED', 'RUNNING');
