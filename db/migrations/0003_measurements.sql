-- Every measurement with everything it depends on, the devices, and their benchmark tables.
-- Measurements outlive their jobs, so `job` is no foreign key. Times never average across devices.

CREATE TABLE measurements (
  number         INTEGER PRIMARY KEY AUTOINCREMENT,
  job            TEXT    NOT NULL,
  candidate_key  TEXT    NOT NULL,
  graph_hash     TEXT    NOT NULL,
  sizes          TEXT    NOT NULL,  -- "m=4093,n=5001", names in order
  device_class   TEXT    NOT NULL,
  device_uuid    TEXT    NOT NULL,
  arch           TEXT    NOT NULL,
  driver         TEXT    NOT NULL,
  toolkit        TEXT    NOT NULL,
  library_hash   TEXT    NOT NULL,
  method_version INTEGER NOT NULL,
  outcome        TEXT    NOT NULL,
  median_seconds REAL    NOT NULL,
  low_seconds    REAL    NOT NULL,
  high_seconds   REAL    NOT NULL,
  created_micros INTEGER NOT NULL,
  conditions     BLOB    NOT NULL,  -- MeasurementConditions
  raw            BLOB    NOT NULL   -- ProgramMeasurement
) STRICT;
CREATE INDEX measurements_candidate ON measurements (candidate_key, device_class);
CREATE INDEX measurements_graph ON measurements (graph_hash, device_class);
CREATE INDEX measurements_job ON measurements (job);
CREATE INDEX measurements_device ON measurements (device_class, number);

CREATE TABLE devices (
  uuid             TEXT    NOT NULL PRIMARY KEY,
  device_class     TEXT    NOT NULL,
  last_seen_micros INTEGER NOT NULL,
  description      BLOB    NOT NULL  -- DeviceDescription
) STRICT;
CREATE INDEX devices_class ON devices (device_class);

-- Benchmark tables: copy bandwidth, launch overhead, routine times ... One row per value; a new measurement replaces it.
CREATE TABLE device_benchmarks (
  device_class   TEXT    NOT NULL,
  driver         TEXT    NOT NULL,
  library_hash   TEXT    NOT NULL,  -- '': does not depend on the library
  quantity       TEXT    NOT NULL,  -- "copy_bandwidth"
  parameter      TEXT    NOT NULL,  -- "bytes=268435456"
  value          REAL    NOT NULL,
  unit           TEXT    NOT NULL,
  created_micros INTEGER NOT NULL,
  PRIMARY KEY (device_class, driver, library_hash, quantity, parameter)
) STRICT, WITHOUT ROWID;
