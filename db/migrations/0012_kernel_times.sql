-- Measured times of kernels, for predictions: one row for each kernel on a class of devices, state of the caches, library and
-- compiler. Only so many are kept: those that were measured last.

CREATE TABLE kernel_times (
  device_class   TEXT    NOT NULL,
  cache          TEXT    NOT NULL,  -- "COLD", "WARM"
  library_hash   TEXT    NOT NULL,
  toolkit        TEXT    NOT NULL,
  family         TEXT    NOT NULL,  -- what it computes, but for sizes
  sizes          TEXT    NOT NULL,  -- "4093,5001"
  variant        TEXT    NOT NULL,  -- "row_panel T256 V4 ..."
  updated_micros INTEGER NOT NULL,
  content        BLOB    NOT NULL,  -- KernelTime
  PRIMARY KEY (device_class, cache, library_hash, toolkit, family, sizes, variant)
) STRICT, WITHOUT ROWID;
CREATE INDEX kernel_times_age ON kernel_times (updated_micros);
