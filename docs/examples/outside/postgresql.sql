-- A table that only the newest term of a lease may write. Each transaction says its term first:
--   SET LOCAL lease.term = '000000000000000247';
-- One row for each lease; its lock puts the transactions of two leaders in order. A leader that is stopped within one
-- holds that lock, and its successor waits, until the server ends what is idle: set idle_in_transaction_session_timeout.
CREATE TABLE lease_terms (lease text PRIMARY KEY, term bigint NOT NULL);

CREATE FUNCTION newest_term_only() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    mine bigint := nullif(current_setting('lease.term', true), '')::bigint;
    seen bigint;
BEGIN
    IF mine IS NULL THEN
        RAISE EXCEPTION 'this table needs the term of lease %: SET LOCAL lease.term', tg_argv[0];
    END IF;
    INSERT INTO lease_terms AS known VALUES (tg_argv[0], mine)
        ON CONFLICT (lease) DO UPDATE SET term = excluded.term WHERE known.term <= excluded.term
        RETURNING term INTO seen;
    IF seen IS NULL THEN
        RAISE EXCEPTION 'term % of lease % has ended', mine, tg_argv[0];
    END IF;
    RETURN NULL;
END $$;

CREATE TABLE journal (id bigserial PRIMARY KEY, pod text NOT NULL, entry text NOT NULL);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON journal
    FOR EACH STATEMENT EXECUTE FUNCTION newest_term_only('shop/operator');
