-- What the log says of leases, one row for each answered request: DuckDB.
-- One folder for each cluster: audit/CLUSTER/*.jsonl.gz (or a bucket: s3://BUCKET/*/*.jsonl.gz).
CREATE TEMPORARY VIEW requests AS
SELECT
  regexp_extract(filename, '([^/]+)/[^/]+$', 1) AS cluster,
  epoch_us(CAST(replace(stageTimestamp, 'Z', '') AS timestamp)) AS answered,
  objectRef.namespace AS namespace,
  coalesce(objectRef.name, responseObject.metadata.name) AS name,
  verb,
  responseStatus.code AS code,
  coalesce(responseStatus.message, '') AS message,
  coalesce(impersonatedUser.username, "user".username) AS writer,
  coalesce("user".extra."authentication.kubernetes.io/pod-name"[1], '') AS pod,
  coalesce(TRY_CAST(responseObject.metadata.resourceVersion AS bigint), 0) AS revision,
  responseObject.spec IS NOT NULL AS is_shown,
  coalesce(responseObject.spec.holderIdentity, '') AS holder,
  coalesce(responseObject.spec.leaseDurationSeconds, 0) AS duration,
  coalesce(responseObject.spec.renewTime, '') AS renew_time,
  coalesce(responseObject.spec.preferredHolder, '') AS preferred
FROM read_json('audit/*/*.jsonl*', format = 'newline_delimited', filename = true, maximum_object_size = 20971520,
  columns = {
    stage: 'VARCHAR', stageTimestamp: 'VARCHAR', verb: 'VARCHAR', requestURI: 'VARCHAR',
    objectRef: 'STRUCT(apiGroup VARCHAR, resource VARCHAR, namespace VARCHAR, "name" VARCHAR)',
    responseStatus: 'STRUCT(code INTEGER, message VARCHAR)',
    "user": 'STRUCT(username VARCHAR, extra STRUCT("authentication.kubernetes.io/pod-name" VARCHAR[]))',
    impersonatedUser: 'STRUCT(username VARCHAR)', requestObject: 'JSON',
    responseObject: 'STRUCT(metadata STRUCT("name" VARCHAR, resourceVersion VARCHAR), spec STRUCT(holderIdentity VARCHAR, leaseDurationSeconds INTEGER, renewTime VARCHAR, preferredHolder VARCHAR))'
  })
WHERE objectRef.apiGroup = 'coordination.k8s.io' AND objectRef.resource = 'leases'
  AND (stage = 'ResponseComplete' OR stage = 'ResponseStarted' AND responseStatus.code = 401)
  AND verb IN ('create', 'update', 'patch', 'delete')
  AND requestURI NOT LIKE '%dryRun=All%'
  AND NOT (verb = 'delete' AND coalesce(CAST(requestObject AS VARCHAR), '') LIKE '%"dryRun":["All"]%');
