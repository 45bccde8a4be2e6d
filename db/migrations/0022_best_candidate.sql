-- Rank 1 of a job that succeeded, as fusion.v1.BestCandidate, so that lists can show it without reading results. Empty for jobs that ended
-- before.

ALTER TABLE jobs ADD COLUMN best BLOB NOT NULL DEFAULT x'';
