-- A job's search cannot end the server any more, so that nothing counts how often and for how long it did.

ALTER TABLE job_times DROP COLUMN starts;
ALTER TABLE job_times DROP COLUMN starts_ended_tasks;
ALTER TABLE job_times DROP COLUMN outlived_micros;
