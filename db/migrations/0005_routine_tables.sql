-- Measured times of the routines of elementary functions: one row for each routine on a class of devices, with the library and the
-- compiler that its code came from.

CREATE TABLE routine_tables (
  device_class   TEXT    NOT NULL,
  library_hash   TEXT    NOT NULL,
  toolkit        TEXT    NOT NULL,
  routine        TEXT    NOT NULL,  -- "mmul_tile<f32,4,4,4> shared"
  content        BLOB    NOT NULL,  -- RoutineTable
  created_micros INTEGER NOT NULL,
  PRIMARY KEY (device_class, library_hash, toolkit, routine)
) STRICT, WITHOUT ROWID;
