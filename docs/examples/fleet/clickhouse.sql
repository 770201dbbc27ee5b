-- What the log says of leases, one row for each answered request: ClickHouse.
-- One folder for each cluster: audit/CLUSTER/*.jsonl.gz; for a bucket, s3('https://BUCKET/*/*.jsonl.gz', 'JSONAsString').
CREATE TEMPORARY VIEW requests AS
WITH JSONExtract(json, 'Tuple(
  stage String, stageTimestamp String, verb String, requestURI String,
  objectRef Tuple(apiGroup String, resource String, namespace String, name String),
  responseStatus Tuple(code Int32, message String),
  user Tuple(username String, extra Tuple("authentication.kubernetes.io/pod-name" Array(String))),
  impersonatedUser Tuple(username String),
  responseObject Tuple(metadata Tuple(name String, resourceVersion String), spec Tuple(
    holderIdentity String, leaseDurationSeconds Int32, renewTime String, preferredHolder String)))') AS event
SELECT
  extract(_path, '([^/]+)/[^/]+$') AS cluster,
  toUnixTimestamp64Micro(parseDateTime64BestEffort(event.stageTimestamp, 6, 'UTC')) AS answered,
  event.objectRef.namespace AS namespace,
  if(event.objectRef.name != '', event.objectRef.name, event.responseObject.metadata.name) AS name,
  event.verb AS verb,
  event.responseStatus.code AS code,
  event.responseStatus.message AS message,
  if(event.impersonatedUser.username != '', event.impersonatedUser.username, event.user.username) AS writer,
  event.user.extra.1[1] AS pod,
  toInt64OrZero(event.responseObject.metadata.resourceVersion) AS revision,
  event.responseObject.spec != defaultValueOfArgumentType(event.responseObject.spec) AS is_shown,
  event.responseObject.spec.holderIdentity AS holder,
  event.responseObject.spec.leaseDurationSeconds AS duration,
  event.responseObject.spec.renewTime AS renew_time,
  event.responseObject.spec.preferredHolder AS preferred
FROM file('audit/*/*.jsonl*', 'JSONAsString')
WHERE position(json, '"coordination.k8s.io"') > 0
  AND event.objectRef.apiGroup = 'coordination.k8s.io' AND event.objectRef.resource = 'leases'
  AND (event.stage = 'ResponseComplete' OR event.stage = 'ResponseStarted' AND event.responseStatus.code = 401)
  AND event.verb IN ('create', 'update', 'patch', 'delete')
  AND event.requestURI NOT LIKE '%dryRun=All%'
  AND NOT (event.verb = 'delete' AND JSONExtractRaw(json, 'requestObject', 'dryRun') LIKE '%"All"%');
