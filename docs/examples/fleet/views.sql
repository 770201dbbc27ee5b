-- Holders, handovers, gaps and refusals, from the view `requests` of duckdb.sql, clickhouse.sql or spark.sql.
-- Times are microseconds since 1970, by the clocks of the API servers.

-- Every stored state and every deletion, in the order in which etcd stored them. A deletion has no resourceVersion.
CREATE TEMPORARY VIEW states AS
SELECT
  cluster, namespace, name, answered, holder, duration, renew_time, preferred, writer, pod, verb = 'delete' AS is_deletion,
  CASE WHEN verb = 'delete' OR revision = 0
    THEN max(revision) OVER (PARTITION BY cluster, namespace, name ORDER BY answered ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ELSE revision END AS place
FROM requests
WHERE code BETWEEN 200 AND 299 AND (is_shown OR verb = 'delete');

-- Each state beside the one before it.
CREATE TEMPORARY VIEW changes AS
SELECT
  cluster, namespace, name, answered, place, is_deletion, duration, renew_time, writer, pod, preferred,
  CASE WHEN is_deletion THEN '' ELSE holder END AS holder,
  lag(place, 1, CAST(-1 AS bigint)) OVER w AS place_before,
  lag(is_deletion, 1, false) OVER w AS was_deleted,
  CASE WHEN lag(is_deletion, 1, false) OVER w THEN '' ELSE lag(holder, 1, '') OVER w END AS holder_before,
  lag(renew_time, 1, '') OVER w AS renewed_before,
  lag(duration, 1, 0) OVER w AS duration_before,
  lag(preferred, 1, '') OVER w AS preferred_before
FROM states
WINDOW w AS (PARTITION BY cluster, namespace, name ORDER BY place, is_deletion, answered);

-- A term goes from one change of the holder to the next one; '' is no one.
CREATE TEMPORARY VIEW numbered AS
SELECT
  *,
  sum(CASE WHEN place_before = -1 OR holder <> holder_before OR was_deleted THEN 1 ELSE 0 END)
    OVER (PARTITION BY cluster, namespace, name ORDER BY place, is_deletion, answered ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS term,
  CASE WHEN renew_time <> renewed_before AND place <> place_before OR holder <> holder_before THEN answered END AS renewed
FROM changes;

-- Who held a lease from when on, and when it renewed last.
CREATE TEMPORARY VIEW terms AS
SELECT
  cluster, namespace, name, term, min(holder) AS holder, min(answered) AS since, max(renewed) AS last_renewal,
  count(renewed) - 1 AS renewals, max(duration) AS duration, max(preferred) AS preferred,
  min(concat(writer, ' ', pod)) AS a_writer, max(concat(writer, ' ', pod)) AS other_writer,
  min(CASE WHEN is_deletion THEN 1 ELSE 0 END) AS is_deleted, max(CASE WHEN is_deletion THEN 1 ELSE 0 END) AS ends_deleted
FROM numbered
GROUP BY cluster, namespace, name, term;

-- Each change of the holder to another one, or to the same one again, and how long no one led at most, in seconds.
CREATE TEMPORARY VIEW handovers AS
SELECT
  cluster, namespace, name, since, before AS previous, holder,
  CASE
    WHEN is_deleted_before = 1 THEN 'deleted'
    WHEN is_free = 1 THEN 'released'
    WHEN since - last_before + 2000000 < duration_before * 1000000 THEN 'stolen'
    -- Clocks of API servers may differ.
    WHEN since - last_before < duration_before * 1000000 THEN 'unknown'
    WHEN preferred_before <> '' THEN 'preferred'
    ELSE 'expired'
  END AS how,
  -- A holder that another writer removed may have stopped after its last renewal.
  (since - CASE WHEN is_free = 1 AND releaser IN (a_writer_before, other_writer_before) THEN ended ELSE last_before END)
    / 1000000.0 AS leaderless
FROM (
  SELECT
    *,
    CASE WHEN lag(holder, 1, '') OVER w = '' THEN 1 ELSE 0 END AS is_free,
    CASE WHEN lag(holder, 1, '') OVER w = '' THEN lag(holder, 2, '') OVER w ELSE lag(holder, 1, '') OVER w END AS before,
    lag(is_deleted, 1, 0) OVER w AS is_deleted_before,
    lag(ends_deleted, 1, 0) OVER w AS ends_deleted_before,
    lag(since, 1, CAST(0 AS bigint)) OVER w AS ended,
    CASE WHEN lag(holder, 1, '') OVER w = '' THEN lag(last_renewal, 2, CAST(0 AS bigint)) OVER w
      ELSE lag(last_renewal, 1, CAST(0 AS bigint)) OVER w END AS last_before,
    lag(a_writer, 1, '') OVER w AS releaser, lag(a_writer, 2, '') OVER w AS a_writer_before,
    lag(other_writer, 2, '') OVER w AS other_writer_before,
    lag(duration, 1, 0) OVER w AS duration_before,
    lag(preferred, 1, '') OVER w AS preferred_before
  FROM terms
  WINDOW w AS (PARTITION BY cluster, namespace, name ORDER BY term)
) AS pairs
-- A lease that was deleted while no one held it is a new one.
WHERE holder <> '' AND before <> '' AND is_deleted_before = ends_deleted_before;

-- Holders that renewed so late that most clients would have given up: after two thirds of the duration.
CREATE TEMPORARY VIEW gaps AS
SELECT cluster, namespace, name, holder, before AS since, (renewed - before) / 1000000.0 AS seconds
FROM (
  SELECT cluster, namespace, name, holder, term, renewed, duration,
    lag(renewed, 1, CAST(0 AS bigint)) OVER (PARTITION BY cluster, namespace, name, term ORDER BY place, answered) AS before
  FROM numbered
  WHERE renewed IS NOT NULL AND holder <> ''
) AS renewals
WHERE before > 0 AND duration > 1 AND (renewed - before) * 3 >= duration * 2000000;

-- Writes that were not stored, and what refused them. A conflict (409) is how electors find out that they are late.
CREATE TEMPORARY VIEW refusals AS
SELECT
  cluster, namespace, name, answered, verb, code, writer, pod, message,
  CASE
    WHEN message LIKE '%admission webhook%denied the request%' THEN 'webhook'
    WHEN message LIKE '%ValidatingAdmissionPolicy%' THEN 'policy'
    WHEN code = 401 THEN 'credentials'
    WHEN message LIKE '% is forbidden: User %cannot %' THEN 'rights'
    ELSE 'other'
  END AS refused_by
FROM requests
WHERE code >= 400;
