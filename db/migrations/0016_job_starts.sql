-- How often a server has begun a job that it was found in already, and was not seen to outlive, since the last of its tasks ended: a job
-- that ends its server every time must not do so for ever. 0 again when a server has worked on it for a while, or has stopped in order.

ALTER TABLE job_times ADD COLUMN starts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_times ADD COLUMN starts_ended_tasks INTEGER NOT NULL DEFAULT 0;  -- tasks of the job that had ended when `starts` was put
