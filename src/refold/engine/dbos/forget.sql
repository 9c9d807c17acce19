-- In the place of the store's own, which does nothing. The workflows of these folds go, with their
-- inputs: what they were given names the tenant and the session.
--
-- Their ids begin with the tenant and the fold and all have the same form, so that a range of them
-- is one in any language's order. Nobody reaches another tenant's: not with rights that are not his.
CREATE OR REPLACE FUNCTION refold.forget_folds(whose text, folds uuid[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone text[];
BEGIN
    IF whose IS DISTINCT FROM refold.tenant() THEN
        RETURN;
    END IF;
    SELECT array_agg(workflow_uuid) INTO gone
    FROM unnest(folds) AS fold,
         LATERAL (
             SELECT 'refold-' || left(encode(sha256(convert_to(whose, 'UTF8')), 'hex'), 32)
                    || '-' || fold || '-' AS start
         ) AS form,
         LATERAL (
             SELECT workflow_uuid FROM refold_dbos.workflow_status
             WHERE workflow_uuid BETWEEN form.start || repeat('0', 32)
                                     AND form.start || repeat('f', 32)
               AND starts_with(workflow_uuid, form.start)
         ) AS found;
    IF gone IS NULL THEN
        RETURN;
    END IF;
    DELETE FROM refold_dbos.workflow_input WHERE workflow_uuid = ANY(gone);
    DELETE FROM refold_dbos.workflow_output WHERE workflow_uuid = ANY(gone);
    DELETE FROM refold_dbos.operation_outputs WHERE workflow_uuid = ANY(gone);
    DELETE FROM refold_dbos.workflow_status WHERE workflow_uuid = ANY(gone);
END
$$;
