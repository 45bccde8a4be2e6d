-- What is learned of the cost model: one row for each class of devices, state of the caches and version of the model.

CREATE TABLE model_statistics (
  device_class   TEXT    NOT NULL,
  cache          TEXT    NOT NULL,  -- "COLD", "WARM"
  model_version  INTEGER NOT NULL,
  statistics     BLOB    NOT NULL,  -- ResidualStatistics
  updated_micros INTEGER NOT NULL,
  PRIMARY KEY (device_class, cache, model_version)
) STRICT, WITHOUT ROWID;

-- The state of the caches that median_seconds, low_seconds and high_seconds are of. Before this they were always of cold ones.
ALTER TABLE measurements ADD COLUMN cache TEXT NOT NULL DEFAULT 'COLD';
