-- What was learned is of the functions that it used, not of the whole library: a function more, or other words about one, forget nothing.
-- A kernel's family names the sources of its functions already; of two libraries that share a kernel the later row stays.

CREATE TABLE kernel_times_by_function (
  device_class   TEXT    NOT NULL,
  cache          TEXT    NOT NULL,  -- "COLD", "WARM"
  toolkit        TEXT    NOT NULL,
  family         TEXT    NOT NULL,  -- what it computes, with the sources of its functions, but for sizes
  sizes          TEXT    NOT NULL,  -- "4093,5001"
  variant        TEXT    NOT NULL,  -- "row_panel T256 V4 ..."
  updated_micros INTEGER NOT NULL,
  content        BLOB    NOT NULL,  -- KernelTime
  PRIMARY KEY (device_class, cache, toolkit, family, sizes, variant)
) STRICT, WITHOUT ROWID;
INSERT OR REPLACE INTO kernel_times_by_function
  SELECT device_class, cache, toolkit, family, sizes, variant, updated_micros, content FROM kernel_times ORDER BY updated_micros;
DROP TABLE kernel_times;
ALTER TABLE kernel_times_by_function RENAME TO kernel_times;
CREATE INDEX kernel_times_age ON kernel_times (updated_micros);

-- A table of routine times is of the source of one function, or of none: loads and stores.
CREATE TABLE routine_tables_by_function (
  device_class   TEXT    NOT NULL,
  toolkit        TEXT    NOT NULL,
  routine        TEXT    NOT NULL,  -- "mmul_tile<f32,4,4,4> shared"
  source_hash    TEXT    NOT NULL,  -- ElementaryFunction::source_hash
  content        BLOB    NOT NULL,  -- RoutineTable
  created_micros INTEGER NOT NULL,
  PRIMARY KEY (device_class, toolkit, routine, source_hash)
) STRICT, WITHOUT ROWID;

-- Rows of the library that had the hash sha256:b33215ecf95c86ab are carried over; those of older ones were read by nobody any more.
-- `sources`: its functions of elements, by the first part of the names of their routines.
INSERT INTO routine_tables_by_function
  WITH sources (function, source_hash) AS (VALUES
    ('madd', '67c73418e8a9ac78'), ('maddi', 'e4f5b13dbbed9cd8'), ('mdet', '8b155284997292d8'), ('minv', 'f89f77c6cf1624e5'),
    ('mmul', '49e93bedad8c259a'), ('mmult', 'a14090dbcbd5f78b'), ('msub', '93c8d359f7c24828'), ('mtmul', '228891fd18e26e8a'),
    ('mtrace', '18ffb2f8d3e0200c'), ('mtrans', '204efcd96605c104'), ('mtvmul', 'dc8c47d7f4662b94'), ('mvmul', 'df4d7ea43cb87f40'),
    ('smmul', '89c08ef51a013964'), ('svemul', '1babfa6392f45c21'), ('veadd', 'f684a3a69eb10679'), ('vecross', '2b5c32d01a0811d2'),
    ('vedot', '0dc0958074018f97'), ('venorm', 'b7549971a851b0da'), ('veouter', 'f8a5102381b50ef3'), ('vesub', '20fbb42873665b28'))
  SELECT device_class, toolkit, routine,
         coalesce((SELECT source_hash FROM sources WHERE function = substr(routine, 1, instr(routine, '_') - 1)), ''),
         content, created_micros
  FROM routine_tables WHERE library_hash = 'sha256:b33215ecf95c86ab';
DROP TABLE routine_tables;
ALTER TABLE routine_tables_by_function RENAME TO routine_tables;
