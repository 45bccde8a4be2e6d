-- What a token is limited to, beside what its role may.

ALTER TABLE tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '';  -- names with spaces between; '': nothing less than the role
