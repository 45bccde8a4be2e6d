-- Tokens of users, and what was changed or refused.

CREATE TABLE tokens (
  number         INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of creation
  id             TEXT    NOT NULL UNIQUE,            -- "tokens/<hex>"
  principal      TEXT    NOT NULL,
  role           TEXT    NOT NULL CHECK (role IN ('USER', 'WORKER', 'ADMIN')),
  secret_hash    TEXT    NOT NULL,                   -- SHA-256 of the secret, 64 hex digits; the secret itself is nowhere
  created_micros INTEGER NOT NULL,
  expires_micros INTEGER NOT NULL,                   -- 0: never
  revoked_micros INTEGER NOT NULL                    -- 0: it is good
) STRICT;

CREATE TABLE audit (
  number      INTEGER PRIMARY KEY AUTOINCREMENT,     -- in the order of writing, never used again
  time_micros INTEGER NOT NULL,
  principal   TEXT    NOT NULL,                      -- '': the operator, or nobody known
  role        TEXT    NOT NULL,                      -- '': nobody known
  peer        TEXT    NOT NULL,                      -- address; '': not known
  method      TEXT    NOT NULL,
  subject     TEXT    NOT NULL,
  outcome     TEXT    NOT NULL,                      -- name of a status code
  refused     INTEGER NOT NULL CHECK (refused IN (0, 1))  -- the outcome is not OK
) STRICT;
CREATE INDEX audit_refused ON audit (refused, number);
