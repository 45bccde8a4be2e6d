-- For how long a job had run when the server last saw that it was still there: a job that ends its server a minute after each start has not
-- been outlived when it has run for two seconds. Of processes since the last of its tasks ended, as `starts` is.

ALTER TABLE job_times ADD COLUMN outlived_micros INTEGER NOT NULL DEFAULT 0;
