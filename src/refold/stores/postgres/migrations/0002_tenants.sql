-- Tenants cannot see each other. Each transaction says whose it is (`refold.tenant`), and the
-- server itself shows and takes no row of anybody else, whatever a statement asks for.
--
-- A role may be bound to one tenant for good: then it is that tenant's, whatever it says.

-- Who may use the store: the roles bound to a tenant, and those of any tenant they say they are.
-- Whoever is not listed is refused, such as a role that was renamed or a member of a listed one.
CREATE TABLE refold.bound_roles (
    role   name PRIMARY KEY,
    tenant text COLLATE "C"  -- none: any
);

-- The tenant that this role is bound to. Roles cannot look into the list themselves, or they would
-- learn the names of other tenants.
CREATE FUNCTION refold.bound_tenant() RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    its text;
BEGIN
    SELECT tenant INTO its FROM refold.bound_roles WHERE role = session_user;
    IF its IS NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'this role is not listed in refold.bound_roles';
    END IF;
    RETURN its;
END
$$;

-- Whose rows this transaction may see. Every statement asks this for every table, so for most it
-- looks nowhere: the roles that are not bound are written into it, and it becomes part of the
-- statement's plan.
CREATE FUNCTION refold.tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN refold.bound_tenant();

CREATE FUNCTION refold.write_free_roles() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION refold.tenant() RETURNS text'
        ' LANGUAGE sql STABLE PARALLEL SAFE RETURN CASE WHEN session_user = ANY (%L::name[])'
        ' THEN current_setting(''refold.tenant'', true) ELSE refold.bound_tenant() END',
        ARRAY(SELECT role FROM refold.bound_roles WHERE tenant IS NULL ORDER BY role)
    );
    RETURN NULL;
END
$$;

CREATE TRIGGER write_free_roles AFTER INSERT OR UPDATE OR DELETE ON refold.bound_roles
FOR EACH STATEMENT EXECUTE FUNCTION refold.write_free_roles();

REVOKE EXECUTE ON FUNCTION refold.write_free_roles FROM PUBLIC;

INSERT INTO refold.bound_roles (role) VALUES (session_user);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['sessions', 'entries', 'segments', 'copies', 'artifacts',
                                'tombstones', 'attempts', 'facts']
    LOOP
        EXECUTE format('ALTER TABLE refold.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE refold.%I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY own ON refold.%I USING (tenant = refold.tenant())', name
        );
    END LOOP;
END
$$;
