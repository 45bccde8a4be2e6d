-- What triggers did, the calls that change the rows do themselves: attempts of tasks (db/store/sqlite_attempts.cc), uses of blobs and builds
-- that an ended job counted on.

DROP TRIGGER task_claimed;
DROP TRIGGER task_let_go;
DROP TRIGGER blob_stored;
DROP TRIGGER job_ended;
