-- The build cache, content-addressed bytes, and what jobs hand out.

CREATE TABLE blobs (
  digest         TEXT    NOT NULL PRIMARY KEY,  -- "sha256:<hex>" of data
  size_bytes     INTEGER NOT NULL,
  created_micros INTEGER NOT NULL,
  data           BLOB    NOT NULL
) STRICT;

-- Results of builds that depend on nothing but their key. A TIMEOUT is not kept: it depends on the machine.
CREATE TABLE builds (
  key            TEXT    NOT NULL PRIMARY KEY,  -- "sha256:<hex>" over source, target, arch, options, compiler
  outcome        TEXT    NOT NULL,              -- OK or COMPILE_ERROR
  binary_digest  TEXT    NOT NULL,              -- in blobs; '' unless OK
  seconds        REAL    NOT NULL,
  created_micros INTEGER NOT NULL,
  log            TEXT    NOT NULL
) STRICT;

CREATE TABLE artifacts (
  job    TEXT    NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  rank   INTEGER NOT NULL CHECK (rank >= 1),
  digest TEXT    NOT NULL REFERENCES blobs (digest),
  PRIMARY KEY (job, rank)
) STRICT, WITHOUT ROWID;
