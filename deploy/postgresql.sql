-- After `ideal audit migrate`, as the owner of the tables: the service may add rows and
-- may not change or remove any.
GRANT SELECT ON alembic_version TO ideal_service;
GRANT SELECT, INSERT ON audit TO ideal_service;
GRANT SELECT, UPDATE ON audit_marks TO ideal_service;
GRANT SELECT, INSERT, DELETE ON units TO ideal_service;
GRANT SELECT, INSERT, DELETE ON promises TO ideal_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON fleet_units TO ideal_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON fleet_places TO ideal_service;
GRANT SELECT, INSERT, DELETE ON fleet_gone TO ideal_service;
GRANT SELECT, INSERT, DELETE ON closures TO ideal_service;
GRANT SELECT, INSERT, UPDATE ON leases TO ideal_service;
GRANT SELECT, INSERT, UPDATE ON webhooks TO ideal_service;
