-- What is needed to keep the build cache within a size: when each blob was last used, and the builds that unfinished jobs count on.

-- A line for each blob, apart from its bytes, so that looking for the least recently used ones reads none of them.
CREATE TABLE blob_uses (
  digest      TEXT    NOT NULL PRIMARY KEY REFERENCES blobs (digest) ON DELETE CASCADE,
  size_bytes  INTEGER NOT NULL,
  used_micros INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_uses_oldest ON blob_uses (used_micros, digest);
INSERT INTO blob_uses SELECT digest, size_bytes, created_micros FROM blobs;
CREATE TRIGGER blob_stored AFTER INSERT ON blobs
BEGIN
  INSERT INTO blob_uses (digest, size_bytes, used_micros) VALUES (NEW.digest, NEW.size_bytes, NEW.created_micros);
END;

CREATE INDEX builds_binary ON builds (binary_digest);
CREATE INDEX artifacts_digest ON artifacts (digest);

-- Builds that a job found in the cache; those that were made for it are its tasks (job_tasks). Until the job ends.
CREATE TABLE job_builds (
  job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  PRIMARY KEY (job, key)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER job_ended AFTER UPDATE OF state ON jobs WHEN NEW.state NOT IN ('QUEUED', 'RUNNING')
BEGIN
  DELETE FROM job_builds WHERE job = NEW.id;
END;
