-- What the log says of leases, one row for each answered request: ClickHouse.
-- One folder for each cluster: audit/CLUSTER/*.jsonl.gz; for a bucket, s3('https://BUCKET/*/*.jsonl.gz', 'JSONAsString').
CREATE TEMPORARY VIEW requests AS
SELECT
  extract(_path, '([^/]+)/[^/]+$') AS cluster,
  toUnixTimestamp64Micro(parseDateTime64BestEffort(JSONExtractString(json, 'stageTimestamp'), 6, 'UTC')) AS answered,
  JSONExtractString(json, 'objectRef', 'namespace') AS namespace,
  if(JSONExtractString(json, 'objectRef', 'name') != '', JSONExtractString(json, 'objectRef', 'name'),
    JSONExtractString(json, 'responseObject', 'metadata', 'name')) AS name,
  JSONExtractString(json, 'verb') AS verb,
  JSONExtractInt(json, 'responseStatus', 'code') AS code,
  JSONExtractString(json, 'responseStatus', 'message') AS message,
  if(JSONHas(json, 'impersonatedUser'), JSONExtractString(json, 'impersonatedUser', 'username'),
    JSONExtractString(json, 'user', 'username')) AS writer,
  JSONExtractString(json, 'user', 'extra', 'authentication.kubernetes.io/pod-name', 1) AS pod,
  toInt64OrZero(JSONExtractString(json, 'responseObject', 'metadata', 'resourceVersion')) AS revision,
  JSONHas(json, 'responseObject', 'spec') = 1 AS is_shown,
  JSONExtractString(json, 'responseObject', 'spec', 'holderIdentity') AS holder,
  JSONExtractInt(json, 'responseObject', 'spec', 'leaseDurationSeconds') AS duration,
  JSONExtractString(json, 'responseObject', 'spec', 'renewTime') AS renew_time,
  JSONExtractString(json, 'responseObject', 'spec', 'preferredHolder') AS preferred
FROM file('audit/*/*.jsonl*', 'JSONAsString')
WHERE position(json, '"coordination.k8s.io"') > 0
  AND JSONExtractString(json, 'objectRef', 'apiGroup') = 'coordination.k8s.io'
  AND JSONExtractString(json, 'objectRef', 'resource') = 'leases'
  AND (JSONExtractString(json, 'stage') = 'ResponseComplete'
    OR JSONExtractString(json, 'stage') = 'ResponseStarted' AND JSONExtractInt(json, 'responseStatus', 'code') = 401)
  AND JSONExtractString(json, 'verb') IN ('create', 'update', 'patch', 'delete')
  AND JSONExtractString(json, 'requestURI') NOT LIKE '%dryRun=All%'
  AND NOT (JSONExtractString(json, 'verb') = 'delete'
    AND JSONExtractRaw(json, 'requestObject', 'dryRun') LIKE '%"All"%');
