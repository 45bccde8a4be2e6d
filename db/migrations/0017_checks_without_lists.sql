-- For a list of more than two values in a CHECK SQLite makes a table of them, in memory, for every row that is written. With OR the
-- constraints mean the same and cost nothing. Only the text of the schema changes, no row, and what other connections may have read of it
-- holds on: SQLite's procedure for changes of that kind (https://www.sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema
-- Changes"), without its new schema_version, which makes others read the text again: nobody needs that here.

PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(sql,
  'CHECK (state IN (''QUEUED'', ''RUNNING'', ''SUCCEEDED'', ''FAILED'', ''CANCELLED''))',
  'CHECK (state = ''QUEUED'' OR state = ''RUNNING'' OR state = ''SUCCEEDED'' OR state = ''FAILED'' OR state = ''CANCELLED'')')
WHERE type = 'table' AND name = 'jobs';

UPDATE sqlite_schema SET sql = replace(replace(sql,
  'CHECK (state IN (''QUEUED'', ''RUNNING'', ''DONE'', ''FAILED'', ''CANCELLED''))',
  'CHECK (state = ''QUEUED'' OR state = ''RUNNING'' OR state = ''DONE'' OR state = ''FAILED'' OR state = ''CANCELLED'')'),
  'CHECK (failure IN ('''', ''WORKER_LOST'', ''WORKER_FAILED'', ''QUEUE_TIMEOUT''))',
  'CHECK (failure = '''' OR failure = ''WORKER_LOST'' OR failure = ''WORKER_FAILED'' OR failure = ''QUEUE_TIMEOUT'')')
WHERE type = 'table' AND name = 'tasks';

PRAGMA writable_schema = RESET;
