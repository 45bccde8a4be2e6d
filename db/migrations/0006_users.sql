-- Who submitted a job. The key of a request that a user named is "<user>/<request_id>", or the id alone where the user is ''.

ALTER TABLE jobs ADD COLUMN user TEXT NOT NULL DEFAULT '';
CREATE INDEX jobs_user ON jobs (user, number);
