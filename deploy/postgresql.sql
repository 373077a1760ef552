-- Once a worker has made the tables as their owner: the service may add rows to the log, and may
-- change or remove none of them.
GRANT SELECT, UPDATE ON head TO ideal_service;
GRANT SELECT, INSERT ON log TO ideal_service;
GRANT SELECT, INSERT, UPDATE ON advice, closure TO ideal_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON unit TO ideal_service;
-- With retention_days the service removes old rows itself; without, the owner runs `ideal audit prune`.
-- GRANT DELETE ON log, advice, closure TO ideal_service;
