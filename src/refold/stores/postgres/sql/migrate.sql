-- name: encoding
SELECT pg_encoding_to_char(encoding)::text FROM pg_database WHERE datname = current_database()

-- name: lock
SELECT pg_advisory_xact_lock(5927683947215842401)

-- name: schema
SELECT true FROM pg_namespace WHERE nspname = 'refold'

-- name: make_schema
CREATE SCHEMA refold

-- name: record
SELECT true FROM pg_tables WHERE schemaname = 'refold' AND tablename = 'migrations'

-- name: make_record
CREATE TABLE refold.migrations (
    number bigint PRIMARY KEY,
    name   text NOT NULL,
    digest text NOT NULL
)

-- name: applied
SELECT number, digest FROM refold.migrations ORDER BY number

-- name: add_record
INSERT INTO refold.migrations (number, name, digest) VALUES ($1, $2, $3)

-- name: make_partitions
SELECT refold.make_partitions($1)

-- name: knows_samples
SELECT true FROM pg_proc
WHERE pronamespace = 'refold'::regnamespace AND proname = 'keep_no_samples'

-- name: keep_no_samples
SELECT refold.keep_no_samples()

-- name: condition
SELECT (SELECT max(number) FROM refold.migrations),
       (SELECT count(*) FROM pg_inherits WHERE inhparent = 'refold.entries'::regclass),
       rolname::text, NOT (rolsuper OR rolbypassrls), nullif(refold.tenant(), '')
FROM pg_roles WHERE rolname = current_user

-- name: access
SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
       ARRAY(
           SELECT relname::text FROM pg_class
           WHERE relnamespace = 'refold'::regnamespace AND relkind IN ('r', 'p')
             AND NOT relispartition
             AND relname NOT IN ('migrations', 'bound_roles', 'erasures')
             AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
                      AND has_table_privilege(oid, 'UPDATE')
                      AND has_table_privilege(oid, 'DELETE'))
           ORDER BY relname
       )

-- name: is_free
SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user

-- name: role
SELECT rolsuper OR rolbypassrls OR pg_roles.oid = nspowner FROM pg_roles, pg_namespace
WHERE rolname = $1::text::name AND nspname = 'refold'

-- name: list_role
INSERT INTO refold.bound_roles (role, tenant) VALUES ($1::text::name, $2)
ON CONFLICT (role) DO UPDATE SET tenant = coalesce(excluded.tenant, bound_roles.tenant)

-- name: grant
GRANT USAGE ON SCHEMA refold TO {role};
GRANT SELECT ON refold.migrations TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON refold.sessions, refold.entries, refold.segments,
    refold.copies, refold.artifacts, refold.tombstones, refold.attempts, refold.facts,
    refold.words, refold.word_chunks, refold.marks, refold.totals, refold.accounts TO {role};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA refold TO {role};
REVOKE EXECUTE ON FUNCTION refold.make_partitions, refold.keep_no_samples FROM {role}
