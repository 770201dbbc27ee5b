-- What the log says of leases, one row for each answered request: Spark.
-- One folder for each cluster: audit/CLUSTER/*.jsonl.gz (or a bucket: s3a://BUCKET/*/*.jsonl.gz).
CREATE TEMPORARY VIEW log (
  stage STRING, stageTimestamp STRING, verb STRING, requestURI STRING,
  objectRef STRUCT<apiGroup: STRING, resource: STRING, namespace: STRING, name: STRING>,
  responseStatus STRUCT<code: INT, message: STRING>,
  user STRUCT<username: STRING, extra: STRUCT<`authentication.kubernetes.io/pod-name`: ARRAY<STRING>>>,
  impersonatedUser STRUCT<username: STRING>, requestObject STRING,
  responseObject STRUCT<metadata: STRUCT<name: STRING, resourceVersion: STRING>, spec: STRUCT<holderIdentity: STRING, leaseDurationSeconds: INT, renewTime: STRING, preferredHolder: STRING>>
) USING json OPTIONS (path 'audit/*/*.jsonl*');

CREATE TEMPORARY VIEW requests AS
SELECT
  regexp_extract(input_file_name(), '([^/]+)/[^/]+$', 1) AS cluster,
  unix_micros(CAST(stageTimestamp AS timestamp)) AS answered,
  objectRef.namespace AS namespace,
  coalesce(objectRef.name, responseObject.metadata.name) AS name,
  verb,
  responseStatus.code AS code,
  coalesce(responseStatus.message, '') AS message,
  coalesce(impersonatedUser.username, user.username) AS writer,
  coalesce(user.extra.`authentication.kubernetes.io/pod-name`[0], '') AS pod,
  coalesce(CAST(responseObject.metadata.resourceVersion AS bigint), 0) AS revision,
  responseObject.spec IS NOT NULL AS is_shown,
  coalesce(responseObject.spec.holderIdentity, '') AS holder,
  coalesce(responseObject.spec.leaseDurationSeconds, 0) AS duration,
  coalesce(responseObject.spec.renewTime, '') AS renew_time,
  coalesce(responseObject.spec.preferredHolder, '') AS preferred
FROM log
WHERE objectRef.apiGroup = 'coordination.k8s.io' AND objectRef.resource = 'leases'
  AND (stage = 'ResponseComplete' OR stage = 'ResponseStarted' AND responseStatus.code = 401)
  AND verb IN ('create', 'update', 'patch', 'delete')
  AND requestURI NOT LIKE '%dryRun=All%'
  AND NOT (verb = 'delete' AND coalesce(requestObject, '') LIKE '%"dryRun":["All"]%');
