-- Online tuning: what is known of each section of each program, and everything that was reported.

CREATE TABLE tunings (
  number              INTEGER PRIMARY KEY AUTOINCREMENT,
  id                  TEXT    NOT NULL UNIQUE,       -- "tunings/<hex>"
  program             TEXT    NOT NULL,
  section             TEXT    NOT NULL,
  device_class        TEXT    NOT NULL,
  context             TEXT    NOT NULL,              -- "m=4096,n=100", names in order
  strategy            TEXT    NOT NULL,
  loads               INTEGER NOT NULL,              -- how often a search began with it
  generation          INTEGER NOT NULL,              -- raised when what was measured counts no more
  best_value          REAL    NOT NULL,
  best_relative_error REAL    NOT NULL,
  phase               TEXT    NOT NULL,              -- name of a v1::TuningPhase
  provenance          TEXT    NOT NULL,              -- name of a v1::Provenance
  provenance_tuning   TEXT    NOT NULL,              -- "tunings/<hex>"; '': none
  drifts              INTEGER NOT NULL,
  evaluations         INTEGER NOT NULL,              -- runs of proposals in this generation
  -- Sums over the reports, so that nobody has to add them up. The last four begin anew with a reset.
  reports             INTEGER NOT NULL,              -- the number of the newest report
  configurations      INTEGER NOT NULL,              -- rows of this generation
  runs                INTEGER NOT NULL,
  failures            INTEGER NOT NULL,
  exploration_excess  REAL    NOT NULL,
  total_value         REAL    NOT NULL,
  created_micros      INTEGER NOT NULL,
  reported_micros     INTEGER NOT NULL,              -- of the newest report; of creation before the first
  defaults            BLOB    NOT NULL,              -- a configuration: 8 bytes for each value
  best                BLOB    NOT NULL,              -- a configuration; empty: none
  declaration         BLOB    NOT NULL,              -- v1::SectionDeclaration
  UNIQUE (program, section, device_class, context)
) STRICT;
CREATE INDEX tunings_reported ON tunings (reported_micros, number);
CREATE INDEX tunings_program_reported ON tunings (program, reported_micros, number);

-- What the reports of one configuration come to.
CREATE TABLE tuning_configurations (
  tuning             INTEGER NOT NULL REFERENCES tunings (number) ON DELETE CASCADE,
  generation         INTEGER NOT NULL,
  configuration      BLOB    NOT NULL,
  count              INTEGER NOT NULL,               -- runs that succeeded
  mean               REAL    NOT NULL,
  squared_deviations REAL    NOT NULL,               -- sum over the runs, from the mean
  minimum            REAL    NOT NULL,
  failures           INTEGER NOT NULL,
  PRIMARY KEY (tuning, generation, configuration)
) STRICT, WITHOUT ROWID;

-- The best after so many evaluations.
CREATE TABLE tuning_convergence (
  tuning        INTEGER NOT NULL REFERENCES tunings (number) ON DELETE CASCADE,
  generation    INTEGER NOT NULL,
  evaluations   INTEGER NOT NULL,
  configuration BLOB    NOT NULL,
  value         REAL    NOT NULL,
  PRIMARY KEY (tuning, generation, evaluations)
) STRICT, WITHOUT ROWID;

-- Every report, appended only; the oldest go when there are very many.
CREATE TABLE tuning_reports (
  tuning             INTEGER NOT NULL REFERENCES tunings (number) ON DELETE CASCADE,
  number             INTEGER NOT NULL,               -- 1, 2, 3 ... in each tuning
  generation         INTEGER NOT NULL,
  process            INTEGER NOT NULL,               -- number of a row of tuning_processes, which may be gone
  time_micros        INTEGER NOT NULL,
  proposal           INTEGER NOT NULL,               -- 0: the choice in force
  count              INTEGER NOT NULL,
  mean               REAL    NOT NULL,
  squared_deviations REAL    NOT NULL,
  minimum            REAL    NOT NULL,
  failures           INTEGER NOT NULL,
  configuration      BLOB    NOT NULL,
  PRIMARY KEY (tuning, number)
) STRICT, WITHOUT ROWID;

-- Up to which batch the reports of a process are here.
CREATE TABLE tuning_processes (
  number          INTEGER PRIMARY KEY AUTOINCREMENT,
  process         TEXT    NOT NULL UNIQUE,           -- as it calls itself
  last_sequence   INTEGER NOT NULL,
  reported_micros INTEGER NOT NULL
) STRICT;
CREATE INDEX tuning_processes_reported ON tuning_processes (reported_micros);
